import ArgumentParser
import Foundation

/// A word that completes a command line.
struct Candidate: Equatable {
  let word: String
  /// Shown by zsh and fish after the word.
  var remark = ""

  /// The part of a text, from its beginning, that a shell can insert so that it means the same, and that shows all that
  /// it has. Other users write titles. bash inserts dollar signs and backquotes without quotes.
  static func usablePart(of text: String) -> String {
    guard let first = text.unicodeScalars.first, !["-", "~", "="].contains(first) else { return "" }
    let end = text.firstIndex { letter in
      letter == "$" || letter == "`" || !letter.unicodeScalars.allSatisfy(\.isSafe)
    }
    return end.map { text[..<$0].trimmingCharacters(in: .whitespaces) } ?? text
  }

  /// The candidate as a completion of a word that was typed in another case; nil if it is none.
  func completing(_ typed: String) -> Candidate? {
    guard String(word.prefix(typed.count)).folded == typed.folded, word.count >= typed.count else { return nil }
    return Candidate(word: typed + word.dropFirst(typed.count), remark: remark)
  }

  /// The line that the script of a shell reads.
  ///
  /// bash expands the words that the script gets, so a title must be quoted, or it would run as a command. zsh ends the
  /// word at a colon, and fish at a tab.
  func line(for shell: CompletionShell?) -> String {
    let remark = remark.safeLine
    switch shell {
    case .bash: return "'\(word.replacing("'", with: #"'\''"#))'"
    case .zsh:
      let word = word.replacing("\\", with: #"\\"#).replacing(":", with: #"\:"#)
      return remark.isEmpty ? word : "\(word):\(remark)"
    case .fish: return remark.isEmpty ? word : "\(word)\t\(remark)"
    default: return word
    }
  }
}
