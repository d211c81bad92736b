import ArgumentParser
import Foundation

/// The options that every command has.
struct AccountOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The service. By default MUSTER_SERVER, or else the service of the last login.", valueName: "url"))
  var server: String?

  @Option(
    help: ArgumentHelp(
      "The profile: one for each Muster user on this machine. By default MUSTER_PROFILE, or else \"default\".",
      valueName: "name"))
  var profile: String?

  @Flag(help: "Print the service's responses as JSON, for scripts.")
  var json = false

  @Flag(help: "Print no colors. Colors are also off if NO_COLOR is set, or if the output is not a terminal.")
  var noColor = false

  var console: Console { Console(printsJSON: json, hasColors: !noColor) }

  /// The account that the options name, whether it is logged in or not.
  ///
  /// - Parameter fallback: the service if none is named or remembered.
  func account(fallback: String? = nil) throws -> Account {
    let folder = try ProfileFolder(name: profile)
    let named = server ?? ProcessInfo.processInfo.environment["MUSTER_SERVER"].flatMap { $0.isEmpty ? nil : $0 }
    if let text = named { return Account(at: try ServerURL(text), in: folder) }
    if let remembered = folder.server { return Account(at: remembered, in: folder) }
    guard let fallback else {
      throw Failure(status: .notLoggedIn, description: "You are not logged in. Use `musterctl login`.")
    }
    return Account(at: try ServerURL(fallback), in: folder)
  }
}
