import ArgumentParser
import Foundation
import MusterKit

/// The rules of a share link, as options.
struct LinkRules: ParsableArguments {
  enum Kind: String, ExpressibleByArgument, CaseIterable {
    case answer, view
  }

  enum Shows: String, ExpressibleByArgument, CaseIterable {
    case counts, names
  }

  enum Email: String, ExpressibleByArgument, CaseIterable {
    case required, optional, none
  }

  @Option(help: ArgumentHelp("Whether others can answer and join, or only look.", valueName: "kind"))
  var kind: Kind?

  @Option(help: ArgumentHelp("What the page shows of the guests: their counts, or also names.", valueName: "what"))
  var shows: Shows?

  @Option(help: ArgumentHelp("When the link ends.", valueName: "time"))
  var expires: String?

  @Option(help: ArgumentHelp("The maximum number of guests who may join through the link.", valueName: "number"))
  var maxGuests: Int?

  @Option(help: ArgumentHelp("How many people each visitor may bring along, at most 10.", valueName: "number"))
  var plusOnes: Int?

  @Option(help: ArgumentHelp("Whether the page asks visitors for an e-mail address.", valueName: "rule"))
  var email: Email?

  @Flag(inversion: .prefixedNo, help: "Whether a host approves each guest first, as for a new link by default.")
  var approval: Bool?

  /// A new link. Options that are not given have the service's defaults.
  func draft() throws -> ShareLinkDraft {
    ShareLinkDraft(
      kind: ShareLink.Kind(rawValue: (kind ?? .answer).rawValue),
      shows: ShareLink.Shows(rawValue: (shows ?? .counts).rawValue), expiresAt: try end(), maxGuests: maxGuests,
      maxPlusOnes: plusOnes, email: email.map { ShareLink.Email(rawValue: $0.rawValue) }, approval: approval)
  }

  /// A change. Options that are not given change nothing.
  func edit() throws -> ShareLinkEdit {
    ShareLinkEdit(
      kind: kind.map { ShareLink.Kind(rawValue: $0.rawValue) },
      shows: shows.map { ShareLink.Shows(rawValue: $0.rawValue) }, expiresAt: try end().map { .set($0) } ?? .keep,
      maxGuests: maxGuests.map { .set($0) } ?? .keep, maxPlusOnes: plusOnes,
      email: email.map { ShareLink.Email(rawValue: $0.rawValue) }, approval: approval)
  }

  private func end() throws -> Date? { try expires.map(PlannedTime(zoneNamed: nil).start) }
}
