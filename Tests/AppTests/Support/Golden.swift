import Foundation
import TestSupport
import Testing

/// The files in `Tests/Golden`, which a person changes together with what they show, so that a review sees it.
enum Golden {
  static let folder = Program.checkout.appending(path: "Tests/Golden")

  /// Compares a text with a file. If they differ, the test fails and says where the new text is.
  ///
  /// - Parameter comment: the start of the lines that are not compared.
  static func compare(_ path: String, with text: String, ignoring comment: String? = nil) throws {
    let golden = (try? String(contentsOf: folder.appending(path: path), encoding: .utf8)) ?? ""
    let kept = lines(golden).filter { line in
      comment.map { !line.trimmingPrefix(while: \.isWhitespace).hasPrefix($0) } ?? true
    }
    let new = lines(text)
    if kept == new { return }
    let file = FileManager.default.temporaryDirectory.appending(path: path.replacing("/", with: "-"))
    try text.write(to: file, atomically: true, encoding: .utf8)
    let place = zip(kept, new).prefix { $0 == $1 }.count
    Issue.record(
      """
      Tests/Golden/\(path) differs from the new text, which is in \(file.path).
      The first difference, in line \(place + 1):
      - \(place < kept.count ? kept[place] : "(the end)")
      + \(place < new.count ? new[place] : "(the end)")
      """)
  }

  static func lines(_ text: String) -> [Substring] {
    text.split(separator: "\n", omittingEmptySubsequences: false)
  }
}
