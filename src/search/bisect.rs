//! The first bad commit of a graph, outcomes taken at their word.
