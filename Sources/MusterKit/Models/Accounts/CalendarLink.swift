import Foundation

/// The secret link to a user's calendar feed. Anyone who has it can read the user's events.
public struct CalendarLink: Codable, Sendable, Equatable {
  /// For calendar apps that ask for a URL.
  public let url: URL
  /// The same with the scheme `webcal`. Opening it adds the calendar on iOS and macOS.
  public let webcalUrl: URL
  /// When the link was made.
  public let createdAt: Date

  /// The service's response, whose members are null without a link.
  struct Shown: Decodable {
    let url: URL?
    let webcalUrl: URL?
    let createdAt: Date?

    var link: CalendarLink? {
      guard let url, let webcalUrl, let createdAt else { return nil }
      return CalendarLink(url: url, webcalUrl: webcalUrl, createdAt: createdAt)
    }
  }
}
