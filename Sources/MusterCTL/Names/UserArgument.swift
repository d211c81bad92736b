import ArgumentParser

struct UserArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The user's username.", valueName: "username"))
  var name: String
}
