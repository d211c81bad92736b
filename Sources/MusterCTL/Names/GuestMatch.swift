import Foundation
import MusterKit

/// Finds a guest by username, by the name of a visitor, by the id, or by the beginning or end of the id.
enum GuestMatch {
  /// The minimum length of a partial id.
  private static let minimumIDPart = 4

  /// The guests whom a text can mean. A whole id takes precedence, because visitors choose their names. Then comes a
  /// username: it is what a user owns.
  static func candidates(for text: String, in guests: [Guest]) -> [Guest] {
    if let guest = guests.first(where: { $0.id == Guest.ID(text) }) { return [guest] }
    let users = guests.filter { $0.user?.isNamed(text) == true }
    guard users.isEmpty else { return users }
    let word = text.lowercased()
    return guests.filter { guest in
      let id = guest.id.description
      let isPart = word.count >= minimumIDPart && (id.hasPrefix(word) || id.hasSuffix(word))
      return isPart || (guest.user == nil && guest.name.lowercased() == word)
    }
  }
}

extension Guest {
  /// Such as `Ben Okafor (ben)`, or `Zoe (visitor)`.
  var fullName: String { user?.fullName ?? "\(name) (visitor)".safeLine }
}
