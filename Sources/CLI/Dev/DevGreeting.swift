import App

/// The text that `muster dev` prints when it is up.
struct DevGreeting {
  /// The base URL for clients.
  let url: String
  /// Whether other machines can reach the service.
  let isShared: Bool
  let logins: DemoSeed.Logins
  let folder: String

  var text: String {
    var lines = ["", "Muster is up at \(url)"]
    if isShared { lines += linesForPhones }
    lines += (logins.leftOut + logins.changed).map { "\($0) `muster dev --reset` deletes all data and starts over." }
    if let login = logins.working {
      let body = #"{"login": "\#(login)", "password": "\#(DemoSeed.password)"}"#
      lines += [
        "Demo login: \(login) with the password \(DemoSeed.password)",
        "Try: curl -s \(url)/api/v1/auth/login -H 'Content-Type: application/json' -d '\(body)'",
      ]
    }
    lines.append("All calls, with examples: \(url)/docs")
    lines.append("Ctrl-C stops it. The data stays in \(folder)")
    return lines.joined(separator: "\n")
  }

  private var linesForPhones: [String] {
    var lines = ["The server for your app: \(url)"]
    if url.hasPrefix("http:") {
      lines.append("An iOS app needs NSAllowsLocalNetworking in its Info.plist, because this is not https.")
    }
    lines.append("Anyone in this network can log in as a demo user: the password is published.")
    return lines
  }
}
