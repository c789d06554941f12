"""Generator of the data set `scenes`: images of everyday things with exact ground truth.

    kinds                    the kinds of objects and the words for everything
    world                    boxes, blueprints, scenes, and all relations that are true of the boxes
    compose                  which objects may hold, ride, chase ... which; random blueprints
    layout                   from a blueprint to boxes
    drawing/                 from boxes to images
    choice                   what a caption mentions
    phrases, sentences       captions: text, logical form and text graph grow together
    forms                    whether a caption is true of an image, for all pairs of a split
    twins                    pairs of scenes with their captions; twins differ in one binding

The scene graph of a caption's text (`graph` in captions.jsonl) follows these conventions, against
which a scene graph parser is evaluated. They make CORA's description definite:

1. OBJECTS are nouns as written, in lower case, without determiner: "two dogs" -> object "dogs",
   name "dog", attribute "two". "people" keeps the name "people"; "piece of furniture" is one object
   (plural "pieces of furniture", name "piece of furniture"). The place ("in a park") is an object.
2. ATTRIBUTES are single words as written: numerals, colours, sizes ("medium-sized"), adjectives and
   participles of state before the noun ("a sleeping dog"), after the copula, joined by "and" ("the
   cup is small and red"), in relative clauses ("a dog that is running"). A copula has no edge.
3. RELATIONS are (subject, label, object) with lower-case labels:
   a. Verb with direct object: the verb's lemma with its particle: "is holding", "holds", "holding"
      -> `hold`; "runs after" -> `run after`; "looking at" -> `look at`; "has" -> `have`.
   b. Passive with by-agent, finite or reduced: the active direction: "a cart pulled by a horse",
      "a cart is being pulled by a horse" -> horse `pull` cart.
   c. Complete prepositions as written: `next to`, `in front of`, `left of`, `to the left of`,
      `on the left of`, `on top of`, `with`. After a noun or a copula the label is only
      the preposition: "a dog (is) under a table" -> dog `under` table; "there is a dog under".
   d. A verb WITHOUT direct object takes its prepositions into the label: "a dog (is) sleeping
      under a table" -> dog `sleep under` table, and "sleeping" is then no attribute. Several
      prepositions give several edges: "In a park, a dog is running behind a car" -> dog
      `run behind` car, dog `run in` park. (An intransitive verb without a preposition is an
      attribute, see 2.)
   e. A verb WITH direct object (or object in another preposition's label, as in "runs after",
      "looks at") relates a place to its subject by the preposition alone: "a man is riding a horse
      in a park", "In a park, a man is riding a horse" -> man `in` park.
   f. "there is/are X and Y": a place in the sentence belongs to X and to Y.
   g. "dressed in a red shirt" -> `dress in`; "a man in a red shirt" -> `in`.
   h. Possession: "the girl's dress is red" -> girl `have` dress, dress has attribute red.
   i. Relative clauses: "a man who is riding a horse is next to a car" -> man `ride` horse, man
      `next to` car; "a ball that a boy is holding" -> boy `hold` ball.
   j. Inversion: "On a table there is a lamp", "Behind the car is a tree" -> lamp `on` table.
   k. Conjunctions distribute: "a man and a dog are next to a car" gives two edges, "a girl is
      wearing a hat and holding a ball" too. "A park with a tree and a car" -> park `with` each.
"""
