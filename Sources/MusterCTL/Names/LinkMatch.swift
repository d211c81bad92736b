import Foundation
import MusterKit

/// Finds a share link by its URL, its id, or the beginning or end of the id.
enum LinkMatch {
  /// The minimum length of a partial id.
  private static let minimumIDPart = 4

  static func candidates(for text: String, in links: [ShareLink]) -> [ShareLink] {
    let id = text.lowercased()
    return links.filter { link in
      let whole = link.id.description
      let isPart = id.count >= minimumIDPart && (whole.hasPrefix(id) || whole.hasSuffix(id))
      return isPart || link.url?.absoluteString == text
    }
  }

  /// The token in a link, or the token itself.
  static func token(in text: String) -> String? {
    let text = text.trimmingCharacters(in: .whitespaces)
    guard text.contains("/") else { return text.isEmpty ? nil : text }
    // People copy links without their scheme.
    return URL(string: text.contains("://") ? text : "https://" + text).flatMap(ShareLink.token)
  }
}
