import ArgumentParser
import Foundation
import MusterKit

/// A command line whose next word is wanted.
struct CompletionRequest: Sendable {
  /// The words before the wanted one, without quotes.
  let earlier: [String]
  /// The beginning of the wanted word, without quotes.
  let typed: String

  /// - Parameters:
  ///   - words: of the command line, as the shell gives them: with quotes.
  ///   - index: of the wanted word.
  init(_ words: [String], at index: Int) {
    earlier = words.prefix(index).map(\.unquoted)
    typed = words.indices.contains(index) ? words[index].unquoted : ""
  }

  /// The account that the command line names.
  var account: Account? {
    try? AccountOptions.account(server: value(of: "--server"), profile: value(of: "--profile"), retries: .never)
  }

  private func value(of option: String) -> String? {
    guard let place = earlier.lastIndex(where: { $0 == option || $0.hasPrefix("\(option)=") }) else { return nil }
    guard earlier[place] == option else { return String(earlier[place].dropFirst(option.count + 1)) }
    // bash takes the equals sign for a word.
    return earlier.dropFirst(place + 1).first { $0 != "=" }
  }
}

extension CompletionKind {
  /// Completes from the user's lists. Offers nothing if the user is logged out, or if there is neither a copy nor the
  /// service.
  static func words(
    _ find: @escaping @Sendable (CompletionRequest, CompletionLists) async -> [Candidate]
  ) -> CompletionKind {
    .custom { (words: [String], index: Int, _: String) async -> [String] in
      let request = CompletionRequest(words, at: index)
      guard let account = request.account, account.client.userID != nil else { return [] }
      let found = await find(request, CompletionLists(account))
      return found.compactMap { $0.completing(request.typed) }.map { $0.line(for: .requesting) }
    }
  }
}

extension String {
  /// A word of a shell's command line without its quotes. The last quote may be open.
  fileprivate var unquoted: String {
    var word = ""
    var quote: Character?
    var isEscaped = false
    for letter in self {
      if isEscaped {
        // In double quotes, other letters keep the backslash.
        if quote == "\"", !"$`\"\\".contains(letter) { word.append("\\") }
        word.append(letter)
        isEscaped = false
      } else if letter == "\\", quote != "'" {
        isEscaped = true
      } else if letter == quote {
        quote = nil
      } else if quote == nil, letter == "'" || letter == "\"" {
        quote = letter
      } else {
        word.append(letter)
      }
    }
    return word
  }
}
