"""From a caption to its scene graph: objects, attributes, relations.

graph                           the graph of a caption, its limits, the table of all graphs
tree                            spaCy's parse as plain lists
joining, retagging, attachment, actors
                                repairs of the parse
objects, attributes, relations, clauses
                                rules that read the repaired parse
lexicon, inflection             the words and word forms that the rules know
rules                           repairs and rules together: from a parse to a graph
parser, parse                   spaCy with the rules; the stage, over processes and machines
accuracy                        agreement with true graphs
"""
