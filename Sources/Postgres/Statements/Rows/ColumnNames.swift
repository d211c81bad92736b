/// How a `Decodable` type's names of properties correspond to names of columns.
public enum ColumnNames: Sendable {
  /// Equal, letter by letter.
  case same
  /// `startTime` is read from `start_time`, and `pictureURL` from `picture_url`.
  case snakeCase

  func column(for key: String) -> String {
    switch self {
    case .same: key
    case .snakeCase: Self.snakeCased(key)
    }
  }

  private static func snakeCased(_ key: String) -> String {
    let letters = Array(key)
    var name = ""
    for (index, letter) in letters.enumerated() {
      guard letter.isUppercase else {
        name.append(letter)
        continue
      }
      let follows = index > 0 && letters[index - 1] != "_"
      // A word begins after a small letter, and with the last capital of an abbreviation before a small letter.
      let begins =
        index > 0 && (!letters[index - 1].isUppercase || (index + 1 < letters.count && letters[index + 1].isLowercase))
      if follows, begins { name.append("_") }
      name += letter.lowercased()
    }
    return name
  }
}
