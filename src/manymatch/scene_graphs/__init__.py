"""From a caption to its scene graph: objects, attributes, relations.

graph                           the graph of a caption, its limits, the table of all graphs
tree                            spaCy's parse as plain lists
joining, retagging, verb_or_noun, counting, attachment, actors
                                repairs of the parse
objects, attributes, relations, clauses, negation
                                rules that read the repaired parse
lexicon, inflection             the words and word forms that the rules know
rules                           repairs and rules together: from a parse to a graph
verbs                           verbs of relations as attributes of their subjects, for CORA
parser, parse                   spaCy with the rules; the stage, over processes and machines
accuracy                        agreement with true graphs
"""
