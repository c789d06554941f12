"""From a caption to its scene graph: objects, attributes, relations.

graph               what a graph is, its limits, its table
tree                spaCy's parse as plain lists
repairs             mends the parse: joining (words that act as one), retagging, attachment
objects, attributes, relations, clauses      the rules, which read the mended parse
lexicon, inflection words and word forms that they know
rules, limits       the graph of a parsed caption; what is too much is dropped and counted
parser, parse       spaCy with the rules behind it; the stage, over several processes
accuracy            agreement with true graphs
"""
