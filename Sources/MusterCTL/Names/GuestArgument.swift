import ArgumentParser

struct GuestArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The guest's username; for a visitor, the name, the id, or the beginning or end of the id.", valueName: "guest"))
  var name: String
}
