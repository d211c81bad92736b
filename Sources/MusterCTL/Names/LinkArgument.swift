import ArgumentParser

struct LinkArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The link: its URL, its id, or the beginning or end of the id.", valueName: "link"))
  var name: String
}
