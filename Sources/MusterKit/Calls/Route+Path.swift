import Foundation

extension Route {
  /// The start of the paths of all routes.
  static let prefix = "/api/v1"

  /// The characters of a path's word that stay as they are.
  private static let plain = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

  /// Such as `POST`.
  var method: String { String(template.prefix { $0 != " " }) }

  /// The path below ``prefix``, percent-encoded.
  var path: String {
    var values = values[...]
    let words = template.drop { $0 != "/" }.split(separator: "/").map { word in
      guard word.first == "{" else { return String(word) }
      return values.removeFirst().addingPercentEncoding(withAllowedCharacters: Self.plain) ?? ""
    }
    return words.map { "/" + $0 }.joined()
  }

  /// The words between the slashes of a path.
  static func words(of path: String) -> [String] {
    path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
  }

  /// Reads an id in a path.
  ///
  /// - Throws: the problem, as 404, if the word is not an id
  static func id<Thing>(_ word: String, else problem: Problem.Slug) throws(Problem) -> Identifier<Thing> {
    guard let id = Identifier<Thing>(word) else { throw .missing(problem) }
    return id
  }
}
