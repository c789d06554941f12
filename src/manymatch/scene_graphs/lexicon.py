"""Closed lists of words for the rules. All other information comes from the parse."""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SPATIAL = """
    in front of, in back of, in between, in the middle of, in the center of, on top of, on the top
    of, on the back of, on the side of, at the side of, by the side of, on the edge of, at the
    edge of, on a side of, on one side of, on the left of, on the right of, to the left of, to the
    right of, to the side of, on the other side of, left of, right of, next to, close to, in the
    background of, adjacent to, away from, out of, inside of, outside of, off of
"""
SPATIAL = frozenset(tuple(phrase.split()) for phrase in _SPATIAL.split(","))
"""Phrases that act as one preposition."""

PARTS = frozenset(phrase[-2] for phrase in SPATIAL if len(phrase) > 2)
"""The nouns of these phrases, which do not act: "front", "middle"."""
SPATIAL_STARTS = frozenset(phrase[0] for phrase in SPATIAL)
SPATIAL_LENGTHS = tuple(sorted({len(phrase) for phrase in SPATIAL}, reverse=True))

COLOURS = words("""
    aqua aquamarine auburn azure beige black blond blonde blue brown burgundy cerise chartreuse
    crimson cyan ecru fuchsia fuschia gold golden gray green grey indigo khaki lavender lilac
    magenta maroon mauve ocher ochre orange periwinkle pink plaid puce purple red scarlet sepia
    silver tan taupe teal turquoise vermilion violet white yellow
""")
COLOURED_THINGS = words("""
    amber apricot charcoal coral cream emerald ivory lime mahogany mint mustard navy olive peach
    plum rose rust salmon
""")
"""Things whose colour clothes may have: a "navy shirt", but a navy ship."""
SHADES = words("baby bright dark hot light lime navy neon olive pale pastel royal sky")
"""Words that make a shade with a colour: "light blue"."""
DENOMINAL = tuple(
    words("""
    aged chested colored coloured dyed eyed faced fashioned haired handed headed legged looking
    painted shaped sized skinned sleeved tinted toned
    """)
)
"""Ends of words in "-ed" that need another word: "golden haired", "happy looking"."""

_CLOTHES = words("""
    bell-bottoms bellbottoms bermudas bifocals bloomers boardshorts boxers braces breeches briefs
    britches capris chaps chinos clothes corduroys coveralls culottes dungarees earmuffs earphones
    eyeglasses fatigues glasses goggles headphones jeans jodhpurs khakis knickers lederhosen
    leggings overalls pajamas pantaloons panties pants pyjamas scrubs shorts slacks snowpants
    spectacles sunglasses suspenders sweatpants sweats swimtrunks tights trousers trunks underpants
    undershorts
""")
PLURALS = _CLOTHES | words("""
    binoculars clippers forceps graffiti handcuffs media pincers pliers scissors shears tongs
    tweezers
""")
"""Nouns without a singular: clothes and tools of two parts."""

PLURALS_IN_S = words("""
    axes bases beanies bogies booties comics cookies corpses doggies doses ellipses graves hippies
    hoagies lures motives ottomans pinkies pixies senses serves sharpies smoothies soles syringes
    uses vases
""")
"""Plurals in "s" alone, for which spaCy's dictionary has another lemma: "basis", "vas"."""

UNITS = words("""
    bedroom burner cm compartment course day deck decker door engine feet foot frame ft gallon hour
    inch inches kilometer lane layer level liter meter mile minute month panel person piece pound
    quarter seat seater speed storey story tier ton way week wheel yard year years
""")
"""Nouns that measure the thing after them: a "two story house"."""
DIMENSIONS = words("big deep high long old tall thick wide")

PRONOUNS = words("""
    anybody anyone anything everybody everyone everything nobody none nothing one ones other
    others somebody someone something there
""")
"""Pronouns that a tagger may tag as nouns."""

RELATIVES = words("that which who whom whose")

MEASURES = words("""
    bag basket bin block body bottle bouquet bowl box bucket can cup glass jar loaf mound mug
    patch piece pile plate pot sheet slice stack stream tray
""")
"""Nouns that name one object together with "of" and a noun: "piece of cloth"."""

QUANTITIES = words("""
    array assortment band bunch class cluster collection couple crew crowd dozen family flock gang
    group handful herd hundred kind line lot number pack pair party plenty row school series set
    sort string team thousand trio type variety
""")
"""Nouns that only count or gather, together with "of": "a couple of dogs" are dogs."""

PICTURES = words("image look photo photograph pic picture portrait shot view")
"""Nouns of pictures: "of" says what they show."""

COMPLEMENTED = words("feel get have hear help keep let make see show watch")
"""Verbs whose object acts or is acted on: "watch a man dance", "have a picture taken"."""
COPULAS = words("be seem look appear become remain stay")
"""Verbs that link an adjective to their subject."""

MOMENTS = words("afternoon bit day evening feet foot inch mile morning night time today way")
"""Nouns of time and distance, which are not visible if used as adverbs."""

UNSEEN_ADVERBS = words(
    "also even here how just not now only so still then there too when where while why"
)
"""Adverbs that say nothing visible."""

LOCATING = words("""
    above against along alongside amid among around atop behind below beneath beside between by in
    inside near on outside over under underneath within
""") | {phrase for phrase in map(" ".join, SPATIAL) if not phrase.endswith("from")}
"""Prepositions that say where something is, whatever the verb."""

PLACES = words("""
    airport alley area arena bathroom bay beach bedroom bridge building bus cafe city classroom
    concert corner court desert dirt driveway field floor forest garden grass ground gym hall
    hallway harbor hill house ice intersection kitchen lake lawn living market mountain museum
    ocean office park path plain playground pond pool rain restaurant rink river road room sand
    school sea shop shore sidewalk sky snow square stadium stage station store street subway sun
    town track trail water woods yard zoo
""")
"""Places of whole scenes: "in the park" describes the subject of a verb, not its object."""

PLACING = words("hang lay load place pour put set stack throw")
MARKING = words("draw paint spray write")
MAKING = words("build create make")
"""Verbs that put their object somewhere, make it on something, or make it out of something."""

OBJECT_PREPOSITIONS = {
    "look": "at",
    "stare": "at",
    "gaze": "at",
    "point": "at",
    "run": "after",
    "chase": "after",
    "listen": "to",
    "talk": "to",
}
"""Verb -> preposition whose noun acts like a direct object."""

PREPOSITIONS = words("""
    above across against along alongside among around at atop behind below beneath beside between
    by down from in inside into near off on onto outside over past through toward towards under
    underneath up with within
""")

RESTING = words("park perch seat")
MOVING = words("drive fly go jump lie pass run sit sleep stand stop swim walk")
"""Verbs whose "by" gives a place, not an agent. `MOVING` verbs with "is" have an agent."""

INTRANSITIVES = MOVING | words("""
    bend bike climb compete crouch cry dance flip kneel laugh lay lean leap look perform pose
    reach relax rest roll shop shout sing ski skateboard skate slide smile speak squat stretch
    surf talk turn twist wade wait wave work yell
""")
"""Verbs that share no object with the verb after "and", as in "smiling and holding a ball"."""

ACTIONS = INTRANSITIVES | words("""
    approach arrive attack bark bite blow bodyboard bounce bow brush camp canoe celebrate charge
    chase chat cheer chew circle come cook dig dive drag drift drink eat embrace emerge exercise
    fall feed fight float follow frolic gather gaze get glare glide grab graze grin hang hike hit
    hop hug hunt jog kayak kick kiss land leave lick listen march meet move nap paddle parade pass
    pause peer pitch play point prepare pull push race ride rise roam rollerblade rush scream serve
    set shake shine shoot skip sled slip smoke snowboard soar speed spin splash stare start stroll
    sunbathe swing tackle throw toss travel trot tumble use visit wakeboard wander watch wrestle
""")
"""Verbs whose participle is an attribute, although the dictionary has them as nouns, too."""

TRANSITIVES = words("""
    carrying chewing displaying eating emitting hauling holding pulling shooting showing spewing
    spraying squirting towing wearing
""")
"""Participles that have an object, also if no article is before the object."""

_SPORTS = """
    bmx biking, bmx riding, body boarding, body surfing, boogie boarding, cross country skiing,
    dirt biking, hang gliding, horse back riding, horseback riding, ice skating, jet skiing, kite
    boarding, kite flying, kite surfing, mountain biking, mountain climbing, para gliding, para
    sailing, para surfing, rock climbing, roller blading, roller skating, scuba diving, skate
    boarding, sky diving, snow boarding, snow shoeing, wake boarding, water skiing, wind surfing
"""
SPORTS = frozenset(tuple(phrase.split()) for phrase in _SPORTS.split(","))
"""Sports whose words act as one verb: "a man kite surfing"."""
SPORT_STARTS = frozenset(phrase[0] for phrase in SPORTS)

NOMINAL_ADJECTIVES = words("""
    amateur antique elite fake faux giant imitation jumbo junior makeshift mini miniature mock
    pretend senior vintage
""")
"""Nouns that describe the noun after them: a "pretend boat"."""

STATES = words("crouch fly jump kneel lie run sit sleep smile stand swim wave")
"""Verbs whose participle before a noun describes the noun, as in "standing horse"."""

GEAR = words("""
    area bag board cap goggles hole lane lesson machine match pool position race shoe short suit
    team track trunk vest
""")
"""Nouns that form a compound with such a participle, as in "swimming pool"."""

WORN = (
    words("""
    apparel apron attire armor backpack bag bandana bathrobe beanie beard belt bikini blazer blouse
    boot bra bracelet cap cape cardigan clothing coat coats costume coverall dress earring garb
    garment gear glass glove gown hair haircut harness hat headband headdress headscarf heel helmet
    hood hoodie jacket jean jersey jumper jumpsuit kilt kimono leotard makeup mask mitten necklace
    outfit overall pajama pant ponytail poncho raincoat robe sandal sari scarf shawl shirt shoe
    short skirt slipper sneaker snowsuit sock stocking suit sunglass sunhat sweater sweatshirt
    swimsuit swimwear t-shirt tank tee tee-shirt tie top tracksuit trunk tshirt tunic turban tutu
    tuxedo underwear uniform veil vest visor wetsuit wig
""")
    | _CLOTHES
)
"""Clothes and similar objects: a participle after them describes their wearer."""

COVERING = words("""
    advertise contain cover depict display face fall feature flow hang lead lie match overlook
    read say show surround
""")
"""Verbs whose subject may be clothes or other things, whoever is there."""

SETTINGS = words("background distance foreground")
"""Parts of the whole scene."""

BODY = words("""
    antler arm beard cheek chest ear eye face finger foot forehead hair hand head horn knee leg lip
    mouth mustache neck nose paw ponytail shoulder tail tattoo tongue tooth
""")
"""Parts of a body, which "with" joins to the body, not to a verb."""
BODILY = words("""
    blowing bulging dangling extending flapping floating flopping flowing fluttering flying hanging
    poking pointing protruding resting showing sticking streaming swinging touching trailing wagging
""")
"""What parts of a body do: "with its tongue hanging out"."""

DIRECTIONS = words("back down off out over up")
"""Adverbs that belong to the verb before a preposition: "walk up to"."""
TAKING = words("bring carry hold lift pick pull put show spread take throw turn")
"""Verbs whose "up", "out" and "down" are particles, not prepositions, if an object follows."""

PEOPLE = words("""
    adult artist athlete audience baby band bicyclist blond blonde boy bride child clown couple
    cowboy crew crowd cyclist dad daughter doctor duo family father female friend girl goalie groom
    group guitarist guy kid lady male man mother motorcyclist musician official participant people
    person policeman ref scientist son student team teen tourist trio woman
""")
ANIMALS = words("""
    animal bear bird bull camel cat cow deer dog duck elephant fish goat horse kitten monkey pig
    pony poodle puppy sheep terrier
""")
"""Nouns of people and animals, which act. Other nouns of people end in "er", "man" and so on."""

AGENT_ENDINGS = ("boy", "er", "girl", "man", "woman")
THINGS = words("""
    alter banner beer border bumper burner butter computer container corner counter cover dinner
    dryer dumpster feeder fender flower hanger helicopter ladder letter newspaper number other paper
    planter poster printer river roller rubber scooter shelter
    shower skyscraper soccer speaker sticker sweater timber tower trailer water wrapper
""")
"""Nouns in "er" that do not act."""

VEHICLES = words("""
    airplane bike boat bus canoe car cart helicopter jeep kayak motorcycle plane raft sailboat
    ship sign train truck van wagon
""")
"""Things that move or show something, so that a participle after them may describe them."""
