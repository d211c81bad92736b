import ArgumentParser
import Foundation
import MusterKit

/// A user's session at a service, for one run of the program.
struct Account: Sendable {
  let server: ServerURL
  let folder: ProfileFolder
  let client: MusterClient
  let responses: ResponseLog

  init(at server: ServerURL, in folder: ProfileFolder, retries: RetryPolicy = .default) {
    self.server = server
    self.folder = folder
    responses = ResponseLog(URLSessionTransport())
    client = MusterClient(
      baseURL: server.url, tokens: folder.tokens(for: server), transport: responses, retries: retries)
  }

  /// The folder of the copies of the user's lists.
  var copies: URL { folder.copies(from: server) }

  /// Logs in with a call of the client, and remembers the service. If another user was logged in before, forgets the
  /// copies of their lists.
  func logIn(with call: () async throws -> User) async throws -> Reply<User> {
    let earlier = client.userID
    let reply = try await responses.reply(to: call)
    if reply.value.id != earlier { try CopyFolder(copies).forget() }
    try folder.remember(server)
    return reply.user
  }

  /// A name for this machine in the user's list of sessions.
  static var deviceName: String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "musterctl" }
    let host = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return "musterctl on \(host)".prefix(100).description
  }
}

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
    try AccountOptions.account(server: server, profile: profile, fallback: fallback)
  }

  /// - Parameters:
  ///   - server: nil for that of the environment, or of the last login.
  ///   - profile: nil for that of the environment.
  static func account(
    server: String?, profile: String?, fallback: String? = nil, retries: RetryPolicy = .default
  ) throws -> Account {
    let folder = try ProfileFolder(name: profile)
    let named = server ?? ProcessInfo.processInfo.environment["MUSTER_SERVER"].flatMap { $0.isEmpty ? nil : $0 }
    if let text = named { return Account(at: try ServerURL(text), in: folder, retries: retries) }
    if let remembered = folder.server { return Account(at: remembered, in: folder, retries: retries) }
    guard let fallback else {
      throw Failure(status: .notLoggedIn, description: "You are not logged in. Use `musterctl login`.")
    }
    return Account(at: try ServerURL(fallback), in: folder, retries: retries)
  }
}

/// A command that acts as a user.
protocol AccountCommand: AsyncParsableCommand {
  var options: AccountOptions { get }

  func run(as account: Account, on console: Console) async throws
}

extension AccountCommand {
  func run() async throws {
    try await run(as: try options.account(), on: options.console)
  }
}

/// Where a Muster service is.
struct ServerURL: Equatable, CustomStringConvertible {
  let url: URL

  /// The address of `muster dev`.
  static let development = "http://127.0.0.1:8080"

  /// - Parameter text: such as `https://muster.example`. A host alone gets https; a path to the API is cut off.
  init(_ text: String) throws {
    var address = text.contains("://") ? text : "https://\(text)"
    while address.hasSuffix("/") { address.removeLast() }
    if address.hasSuffix("/api/v1") { address.removeLast("/api/v1".count) }
    guard let parts = URLComponents(string: address), let scheme = parts.scheme?.lowercased(),
      ["http", "https"].contains(scheme), let host = parts.host, !host.isEmpty, parts.user == nil,
      parts.query == nil, parts.fragment == nil
    else { throw Failure.usage("\"\(text)\" is not the URL of a service. Write for example https://muster.example.") }
    var normal = parts
    normal.scheme = scheme
    normal.host = host.lowercased()
    guard let url = normal.url else { throw Failure.usage("\"\(text)\" is not a URL.") }
    self.url = url
  }

  var description: String { url.absoluteString }

  /// A name for files. Different services have different names.
  var fileName: String {
    let allowed = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyz0123456789.-")
    return description.addingPercentEncoding(withAllowedCharacters: allowed) ?? "server"
  }
}
