"""Run a trained model on the tasks of a data set with mteb, in the folder that holds params.yaml:

python examples/run_mteb.py flickr8k-vsepp flickr8k predictions
manymatch score flickr8k --scores predictions/flickr8k-pairs-t2i_predictions.json
"""

import json
import sys

import mteb

import manymatch
from manymatch.evaluation.external.mteb import MtebModel, tasks

name, dataset, predictions = sys.argv[1:]
results = mteb.evaluate(
    MtebModel(manymatch.load(name)), tasks(dataset), cache=None, prediction_folder=predictions
)
for result in results.task_results:
    (scores,) = result.scores["test"]
    print(result.task_name, json.dumps(scores))
