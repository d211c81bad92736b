import ArgumentParser

/// The argument parser's message about a mistake, with what the user probably meant.
enum UsageMessage {
  /// - Parameters:
  ///   - message: of the parser.
  ///   - arguments: of the program, without its name.
  static func improved(_ message: String, for arguments: [String]) -> String {
    if let unknown = unknownCommand(in: arguments) { return unknown }
    if let option = arguments.first?.prefix(while: { $0 != "=" }),
      ["--server", "--profile", "--json", "--no-color"].contains(option)
    {
      return "The option '\(option)' comes after the command."
    }
    // The parser compares options, but no values.
    guard let match = message.firstMatch(of: /The value '(.*)' is invalid for (?s:.*)Please provide one of(?s:(.*))/)
    else { return message }
    let choices = match.2.matches(of: /'([^']+)'|- ([^\s]+)/).map { String($0.1 ?? $0.2 ?? "") }
    guard let choice = Suggestion.word(for: String(match.1), in: choices) else { return message }
    return "\(message)\n\(Suggestion.question(["'\(choice)'"]))"
  }

  /// A sentence about the first word that should be a command and is none.
  private static func unknownCommand(in arguments: [String]) -> String? {
    var command: any ParsableCommand.Type = MusterCTL.self
    var path: [String] = []
    for word in arguments.first == "help" ? arguments.dropFirst() : arguments[...] {
      let commands = command.configuration.subcommands
      guard !word.hasPrefix("-"), !commands.isEmpty else { return nil }
      if let next = commands.first(where: { $0._commandName == word }) {
        command = next
        path.append(word)
        continue
      }
      let names = suggestions(for: word, after: path, in: commands)
      let line = "There is no command '\((path + [word]).joined(separator: " "))'."
      return names.isEmpty ? line : "\(line) \(Suggestion.question(names.map { "'\($0)'" }))"
    }
    return nil
  }

  private static func suggestions(
    for word: String, after path: [String], in commands: [any ParsableCommand.Type]
  ) -> [String] {
    let similar = Suggestion.things(for: word, in: commands.map { $0._commandName }) { [$0] }
    if !similar.isEmpty { return similar.map { (path + [$0]).joined(separator: " ") } }
    // It may be a command of another group, such as `accept`.
    return all(of: MusterCTL.self).filter { $0.last == word }.map { $0.joined(separator: " ") }
  }

  private static func all(of group: any ParsableCommand.Type, after path: [String] = []) -> [[String]] {
    group.configuration.subcommands.flatMap { command in
      let inner = path + [command._commandName]
      return [inner] + all(of: command, after: inner)
    }
  }
}
