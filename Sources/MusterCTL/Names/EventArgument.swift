import ArgumentParser

struct EventArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The event: a part of its title, its id, or the beginning or end of the id.", valueName: "event"))
  var name: String
}
