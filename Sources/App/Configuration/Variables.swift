import Foundation
import JWTKit

/// The values of variables. The first of several layers that has a value wins.
struct Variables {
  let layers: [[String: String]]

  /// An empty value counts as none. For a secret, a layer may have the path of a file instead.
  func text(_ variable: Variable) throws(MusterConfiguration.Problem) -> String? {
    for layer in layers {
      let value = layer[variable.name].flatMap { $0.isEmpty ? nil : $0 }
      let path = variable.isSecret ? layer[variable.fileName].flatMap { $0.isEmpty ? nil : $0 } : nil
      if value != nil, path != nil {
        throw MusterConfiguration.Problem("\(variable.name) and \(variable.fileName) are both set: set only one")
      }
      if let path { return try contents(of: path, for: variable.fileName) }
      if let value { return value }
    }
    return variable.value
  }

  /// Removes the line break that editors leave at the end.
  private func contents(of path: String, for name: String) throws(MusterConfiguration.Problem) -> String {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
      // The path is not quoted: it is the secret itself if the two names are mixed up.
      throw MusterConfiguration.Problem("\(name) must be the path of a readable UTF-8 file")
    }
    let trimmed = text.trimmingCharacters(in: .newlines)
    guard !trimmed.isEmpty else { throw MusterConfiguration.Problem("\(name): the file is empty") }
    return trimmed
  }

  func required(_ variable: Variable, hint: String) throws(MusterConfiguration.Problem) -> String {
    guard let value = try text(variable) else {
      throw MusterConfiguration.Problem("\(variable.name) is not set: it must be \(hint)")
    }
    return value
  }

  /// - Parameter form: the required form of the value, for an error message.
  func parsed<Value>(_ variable: Variable, _ form: String, _ parse: (String) -> Value?) throws -> Value? {
    guard let text = try text(variable) else { return nil }
    guard let value = parse(text) else {
      let given = variable.isSecret ? "not" : "\"\(text)\""
      throw MusterConfiguration.Problem("\(variable.name) must be \(form), but is \(given)")
    }
    return value
  }

  /// A variable that has a default.
  func value<Value>(_ variable: Variable, _ form: String, _ parse: (String) -> Value?) throws -> Value {
    guard let value = try parsed(variable, form, parse) else {
      throw MusterConfiguration.Problem("\(variable.name) is not set: it must be \(form)")
    }
    return value
  }

  func isOn(_ variable: Variable) throws -> Bool {
    try value(variable, "on or off") { ["off": false, "on": true][$0] }
  }

  func number(_ variable: Variable, in range: ClosedRange<Int>) throws -> Int {
    try value(variable, "a whole number from \(range.lowerBound) to \(range.upperBound)") { Int($0, in: range) }
  }

  func keys(_ variable: Variable) throws -> SigningKeys {
    let text = try required(variable, hint: "kid:base64 with at least 32 bytes (`muster keys` prints one)")
    do throws(SigningKeys.Malformed) {
      return try SigningKeys(text)
    } catch {
      throw MusterConfiguration.Problem("\(variable.name) \(error.message)")
    }
  }

  func url(_ variable: Variable) throws -> String {
    try value(variable, "an https URL") { text in
      guard let url = URL(string: text), url.scheme == "https", url.host()?.isEmpty == false else { return nil }
      return text
    }
  }

  /// A URL to which paths are appended.
  func baseURL(_ variable: Variable) throws -> String {
    var text = try url(variable)
    while text.hasSuffix("/") { text.removeLast() }
    return text
  }

  /// A key that Apple has issued to a team: all of its variables or none.
  func appleKey(_ key: Variable.AppleKey) throws -> (teamID: String, keyID: String, key: ES256PrivateKey)? {
    guard try key.all.contains(where: { try text($0) != nil }) else { return nil }
    let hint = "set if one of \(key.all.map(\.name).joined(separator: ", ")) is"
    let pem = try required(key.privateKey, hint: hint).replacing("\\n", with: "\n")
    // The value is not quoted, because it is a secret.
    guard let parsed = try? ES256PrivateKey(pem: pem) else {
      throw MusterConfiguration.Problem("\(key.privateKey.name) must be a P-256 key in PEM, but is not")
    }
    return (try required(key.teamID, hint: hint), try required(key.keyID, hint: hint), parsed)
  }
}

extension Int {
  init?(_ text: String, in range: ClosedRange<Int>) {
    guard let number = Int(text), range.contains(number) else { return nil }
    self = number
  }
}
