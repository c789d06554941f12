"""`scenes`: generated pictures of everyday things with exact many-to-many ground truth.

    kinds, words      what there is, and how it is called
    ties, compose     who may hold, ride, chase what; drawing a blueprint
    layout, geometry  from blueprint to boxes; every relation that is true of them
    drawing/          from boxes to pictures
    choice            what a caption tells
    phrases, grammar  captions: text, logical form and text graph grow together
    forms, relevance  when a caption is true of an image, for all pairs of a split
    twins             pairs of scenes that differ in one binding
    generate          pairs of scenes with their captions

Truth of a caption's text (`graph` in captions.jsonl), the conventions a scene graph parser is
measured against; METHODS (CORA) made definite:

1. OBJECTS are nouns as worded, lower case, without determiner: "two dogs" -> object "dogs", name
   "dog", attribute "two". "people" keeps the name "people"; "piece of furniture" is one object
   (plural "pieces of furniture", name "piece of furniture"). The place ("in a park") is an object.
2. ATTRIBUTES are single words as worded: numerals, colours, sizes ("medium-sized"), adjectives and
   participles of state before the noun ("a sleeping dog"), after the copula, joined by "and" ("the
   cup is small and red"), in relative clauses ("a dog that is running"). A copula has no edge.
3. RELATIONS are (subject, label, object) with lower-case labels:
   a. Verb with direct object: the verb's lemma with its particle: "is holding", "holds", "holding"
      -> `hold`; "runs after" -> `run after`; "looking at" -> `look at`; "has" -> `have`.
   b. Passive with by-agent, finite or reduced: the active direction: "a cart pulled by a horse",
      "a cart is being pulled by a horse" -> horse `pull` cart.
   c. Prepositions as worded, whole: `next to`, `in front of`, `left of`, `to the left of`,
      `on the left of`, `on top of`, `with`. With a noun or a copula before it the label is the
      preposition alone: "a dog (is) under a table" -> dog `under` table; "there is a dog under".
   d. A verb WITHOUT direct object takes its prepositions into the label: "a dog (is) sleeping
      under a table" -> dog `sleep under` table, and "sleeping" is then no attribute. Several
      prepositions give several edges: "In a park, a dog is running behind a car" -> dog
      `run behind` car, dog `run in` park. (Intransitive without any preposition: attribute, 2.)
   e. A verb WITH direct object (or object in another preposition's label, as in "runs after",
      "looks at") leaves a place to its subject with the preposition alone: "a man is riding a horse
      in a park", "In a park, a man is riding a horse" -> man `in` park.
   f. "there is/are X and Y": a place before or after it belongs to each of X and Y.
   g. "dressed in a red shirt" -> `dress in`; "a man in a red shirt" -> `in`.
   h. Possession: "the girl's dress is red" -> girl `have` dress, dress has attribute red.
   i. Relative clauses: "a man who is riding a horse is next to a car" -> man `ride` horse, man
      `next to` car; "a ball that a boy is holding" -> boy `hold` ball.
   j. Inversion: "On a table there is a lamp", "Behind the car is a tree" -> lamp `on` table.
   k. Conjunctions distribute: "a man and a dog are next to a car" gives two edges, "a girl is
      wearing a hat and holding a ball" too. "A park with a tree and a car" -> park `with` each.
"""
