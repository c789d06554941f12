"""The analysis of sets: against naive loops, tables by hand, and embeddings cut by hand."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_sets  # noqa: F401  registers the method
import torch
from made_scores import naive_nearest
from PIL import Image
from tiny_bert import make_bert
from torch.nn.functional import normalize

from manymatch.batch.numbering import CaptionEntry
from manymatch.batch.scene_graph import SceneGraph
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import WordPieces
from manymatch.config.params import Elements
from manymatch.evaluation.protocols.recall import recall
from manymatch.evaluation.protocols.relevance import Judgments
from manymatch.evaluation.samples import draw_queries
from manymatch.evaluation.sets.analysis import analyse_sets
from manymatch.evaluation.sets.sampled_sets import caption_maps, image_maps
from manymatch.methods import build_method
from manymatch.methods.shared.method import Embeddings
from manymatch.model.embed import Embedded
from manymatch.shards.sample import Sample
from manymatch.similarities.sets import smooth_chamfer

GRAPH = SceneGraph(("dog",), ("dog",), ((),), ())
VOCABULARY = Vocabulary([*Vocabulary.SPECIAL, "a", "dog", "runs"])


def _vectors(*shape, seed=0, dtype=torch.float64):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return made.to(dtype)


def _jpeg(width, height):
    stream = io.BytesIO()
    Image.new("RGB", (width, height)).save(stream, "JPEG")
    return stream.getvalue()


def _sample(image_id, boxes, captions=1):
    texts = ("A dog runs", "a cat", "dog")
    entries = [CaptionEntry(f"{image_id}#{k}", texts[k % 3], GRAPH) for k in range(captions)]
    features = np.zeros((1 if boxes is None else len(boxes), 2), np.float16)
    thumbnail = _jpeg(8, 6) if boxes is not None else None
    return Sample(image_id, image_id, "", (), tuple(entries), features, boxes, thumbnail)


GRID = np.array([[0, 0, 1, 1], [1, 0, 2, 1], [0, 1, 1, 2], [1, 1, 2, 2]], np.float32) / 2
BOXES = np.array([[0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1]], np.float32)


def test_image_maps_tell_grids_from_boxes_and_leave_padding_out():
    attention = _vectors(3, 2, 4).softmax(2)
    maps = image_maps([_sample("a", GRID), _sample("b", BOXES), _sample("c", None)], attention)
    assert [shown.image_id for shown in maps] == ["a", "b"]  # no telling where c's regions lie
    assert (maps[0].grid, maps[0].boxes, maps[0].size) == (2, None, (8, 6))
    assert maps[1].grid is None
    assert maps[1].boxes == [(0.1, 0.2, 0.3, 0.4), (0, 0, 1, 1)]
    assert np.shape(maps[1].weights) == (2, 2)
    assert maps[0].weights[1][3] == pytest.approx(attention[0, 1, 3].item(), abs=1e-4)
    (maps,) = image_maps([_sample("a", GRID[::-1].copy())], torch.ones(1, 1, 4))
    assert maps.grid is None
    assert len(maps.boxes) == 4


def test_caption_maps_show_the_words_that_the_model_sees():
    entries = [CaptionEntry("x", "A cat runs.", GRAPH), CaptionEntry("y", "?!", GRAPH)]
    attention = torch.tensor([[[0.1, 0.2, 0.7, 0.0]], [[1.0, 0.0, 0.0, 0.0]]])
    maps = caption_maps(entries, attention, VOCABULARY)
    assert maps[0].words == ["a", "<unk>", "runs"]
    assert maps[0].weights[0] == pytest.approx([0.1, 0.2, 0.7])
    assert (maps[1].words, maps[1].weights) == (["<unk>"], [[1.0]])


def test_wordpieces_are_between_the_two_ends_that_a_bert_adds(tmp_path):
    """The order of `BertEncoder`."""
    entries = [CaptionEntry("x", "a dog runs", GRAPH)]
    pieces = WordPieces.from_folder(make_bert(tmp_path))
    shown = pieces.encode("a dog runs")
    (maps,) = caption_maps(entries, torch.ones(1, 2, 9), pieces)
    assert maps.words == ["[CLS]", *(pieces.words[number] for number in shown), "[SEP]"]


class _Made:
    """A made-up split of `n` images with three captions each, as sets."""

    def __init__(self, n=12, elements=(3, 2)):
        k, texts = elements
        self.image_index = torch.arange(n).repeat_interleave(3)
        made = normalize(_vectors(n, k, 6).float(), dim=2)
        near = made[self.image_index, :texts] + _vectors(3 * n, texts, 6, seed=1).float() / 2
        attention = torch.full((3 * n, texts, 4), 0.25)
        self.embedded = Embedded(
            Embeddings(made, attention=torch.full((n, k, 4), 0.25)),
            Embeddings(normalize(near, dim=2), attention=attention),
            [f"image{i}" for i in range(n)],
            [f"image{i // 3}#{i % 3}" for i in range(3 * n)],
            self.image_index,
        )
        settings = {"images": k, "texts": texts}
        self.method = build_method("tiny_sets", settings, vocabulary=VOCABULARY, feature_width=2)
        self.method.score = lambda images, texts: smooth_chamfer(images.vectors, texts.vectors)
        self.judgments = Judgments(torch.tensor([[0, 4], [2, 1]]), complete=True)

    @staticmethod
    def stored(rows):
        return (_sample(f"image{row}", GRID, captions=3) for row in rows)

    def analyse(
        self,
        wanted=Elements(),  # noqa: B008
        samples=4,
    ):
        embedded = self.embedded
        whole = recall(self.method.score, embedded.images, embedded.texts, embedded.image_index)
        queries = draw_queries(len(embedded.images), len(embedded.texts), samples)
        result = analyse_sets(
            self.method, embedded, whole, wanted, queries, self.stored, self.judgments, VOCABULARY
        )
        return result and SimpleNamespace(metrics=result[0], details=result[1])


def test_chosen_elements_score_as_embeddings_cut_by_hand():
    made = _Made()
    analysis = made.analyse(Elements(images=((1, 3), (1, 4), (2,)), texts=((1,),)))
    images, texts = made.embedded.images.vectors, made.embedded.texts.vectors
    selected = analysis.details.selections
    assert [(c.modality, c.elements) for c in selected] == [
        *(("images", elements) for elements in ([1], [2], [3], [1, 3])),
        *(("texts", elements) for elements in ([1], [2])),
    ]
    for choice in selected:
        rows = [element - 1 for element in choice.elements]
        cut = (images[:, rows], texts) if choice.modality == "images" else (images, texts[:, rows])
        expected = recall(made.method.score, *map(Embeddings, cut), made.image_index)
        assert choice.recall.rsum == pytest.approx(expected["rsum"], abs=0.006)
        name = "+".join(map(str, choice.elements))
        rsums = getattr(analysis.metrics, choice.modality).rsum_of
        assert rsums[name] == pytest.approx(expected["rsum"])


def test_shown_items_are_the_nearest_ones_with_their_marks():
    made = _Made()
    analysis = made.analyse()
    parts = made.embedded.images.vectors, made.embedded.texts.vectors
    ids = {"image_id": made.embedded.image_ids, "caption_id": made.embedded.caption_ids}
    for key, side, (own, other), (queries, gallery) in (
        ("images", "images", ids, parts),
        ("captions", "texts", reversed(ids), parts[::-1]),
    ):
        expected = naive_nearest(queries, gallery, 3)
        firsts = [len({answers[0][1] for answers in entry}) for entry in expected]
        assert getattr(analysis.metrics, side).distinct == pytest.approx(sum(firsts) / len(firsts))
        for query in getattr(analysis.details.nearest, key):
            row = ids[own].index(getattr(query, own))
            for answers, best in zip(query.elements, expected[row], strict=True):
                shown = [(ids[other].index(getattr(item, other)), item.element) for item in answers]
                assert shown == [(item, element) for _, item, element in best]
                for answer, (item, _) in zip(answers, shown, strict=True):
                    image, caption = (row, item) if key == "images" else (item, row)
                    judged = [image, caption] in made.judgments.extra.tolist()
                    mark = "own" if caption // 3 == image else "true" if judged else "wrong"
                    assert answer.mark == mark


def test_maps_of_every_pass_end_in_the_attention_and_ask_for_the_sampled_images_alone():
    made = _Made()
    asked = []

    def image_passes(batch):
        assert not made.method.training
        asked.extend(batch.image_ids)
        return torch.full((2, len(batch.image_ids), 3, 4), 0.25)

    made.method.train()
    made.method.image_passes = image_passes
    analysis = made.analyse()
    assert made.method.training
    maps = analysis.details.image_maps
    assert asked == [shown.image_id for shown in maps]
    assert all(np.shape(shown.passes) == (2, 3, 4) for shown in maps)
    assert all(shown.passes[-1] == shown.weights for shown in maps)


def test_single_vectors_have_no_sets_and_one_modality_may_have_them_alone():
    assert _Made(elements=(1, 1)).analyse() is None
    analysis = _Made(elements=(3, 1)).analyse()
    assert "texts" not in analysis.metrics.to_json()


def test_without_queries_or_attention_there_are_no_maps():
    shown = _Made().analyse(samples=0).details
    assert shown.nearest.to_json() == {"images": [], "captions": []} and shown.image_maps == []
    made = _Made()
    made.embedded = Embedded(
        Embeddings(made.embedded.images.vectors),
        Embeddings(made.embedded.texts.vectors),
        made.embedded.image_ids,
        made.embedded.caption_ids,
        made.image_index,
    )
    analysis = made.analyse()
    assert analysis.details.image_maps == analysis.details.caption_maps == []
