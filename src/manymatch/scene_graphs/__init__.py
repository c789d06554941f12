"""From a caption to its scene graph: objects, attributes, relations.

tree                            spaCy's parse as plain lists
joining, retagging, verb_or_noun, verbs_of_wearers, counting, attachment, actors
                                repairs of the parse
objects, attributes, relations, clauses
                                rules that read the repaired parse
lexicon                         the words that the rules know
verbs                           forms of verbs; verbs of relations as attributes, for CORA
parser, parse                   spaCy with the rules; the stage, over processes and machines
"""
