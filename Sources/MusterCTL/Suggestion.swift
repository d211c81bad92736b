import Foundation

/// The probable meaning of a mistyped name.
enum Suggestion {
  /// The most things that a message names.
  private static let limit = 3

  /// A name with fewer letters is no beginning of another.
  private static let minimumBeginning = 3

  /// The word that a mistyped one probably means.
  static func word(for typed: String, in words: [String]) -> String? {
    things(for: typed, in: words) { [$0] }.first
  }

  /// The things that a mistyped name may mean, the most similar first.
  ///
  /// - Parameter names: the names of a thing. Each word of a name also counts.
  static func things<Thing>(for typed: String, in things: [Thing], names: (Thing) -> [String]) -> [Thing] {
    let wanted = Array(typed.folded)
    guard !wanted.isEmpty else { return [] }
    let found = things.compactMap { thing in
      names(thing).flatMap { [$0.folded] + $0.folded.split(separator: " ").map(String.init) }
        .compactMap { distance(from: wanted, to: Array($0)) }.min().map { (thing, $0) }
    }
    return found.sorted { $0.1 < $1.1 }.prefix(limit).map(\.0)
  }

  /// Such as `Did you mean ben or bea?`
  static func question(_ names: [String]) -> String { "Did you mean \(names.joined(separator: " or "))?" }

  /// The number of letters that are wrong, missing, superfluous or swapped; nil if these are too many for a mistake.
  private static func distance(from typed: [Character], to word: [Character]) -> Int? {
    if typed.count >= minimumBeginning, word.starts(with: typed) { return 1 }
    let allowed = max(1, min(typed.count, word.count) / 3)
    // A longer way around cannot be a mistake, and costs time.
    guard min(typed.count, word.count) > 1, abs(typed.count - word.count) <= allowed else { return nil }
    let distance = distances(from: typed, to: word)
    return distance <= allowed ? distance : nil
  }

  /// The distance of Damerau and Levenshtein, by which no part is changed twice.
  private static func distances(from typed: [Character], to word: [Character]) -> Int {
    var before: [Int] = []
    var last = Array(0...word.count)
    for (row, letter) in typed.enumerated() {
      var next = [row + 1]
      for column in word.indices {
        let isSame = word[column] == letter
        var cost = min(last[column] + (isSame ? 0 : 1), last[column + 1] + 1, next[column] + 1)
        if row > 0, column > 0, word[column] == typed[row - 1], word[column - 1] == letter {
          cost = min(cost, before[column - 1] + 1)
        }
        next.append(cost)
      }
      (before, last) = (last, next)
    }
    return last[word.count]
  }
}

extension String {
  /// The text for comparisons: without differences of case, accents and widths.
  var folded: String {
    trimmingCharacters(in: .whitespaces)
      .folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
  }
}
