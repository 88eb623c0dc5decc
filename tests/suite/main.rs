mod corpus;
mod simulation;
