"""What a method costs: operations, parameters, seconds of training, testing and of a query."""
