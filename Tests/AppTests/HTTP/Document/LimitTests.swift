import Foundation
import HTTPServer
import Testing
import TestSupport

@testable import App

/// Each limit is one constant in the code, from which messages take it. What people read elsewhere is compared here.
@Suite struct LimitTests {
  private struct Limit: Sendable, CustomTestStringConvertible {
    let value: Int
    /// A phrase with `#` for the number, and the files that say it.
    let phrase: String
    let files: [String]

    init(_ value: Int, _ phrase: String, _ files: String...) {
      self.value = value
      self.phrase = phrase
      self.files = files
    }

    var testDescription: String { phrase }
  }

  private static let document = "Sources/App/HTTP/openapi.yaml"
  private static let limits = [
    Limit(Event.maximumCoHosts, "an event has at most # co-hosts", document),
    Limit(ShareLink.maximumPerEvent, "an event has at most # share links", document),
    Limit(ShareLink.maximumPerEvent, "An event has at most # links", document, "docs/sharing.md"),
    Limit(Device.maximum, "a user has at most # devices", document),
    Limit(Device.maximum, "A user has at most # devices", "docs/notifications.md"),
    Limit(Device.maximum, "You already have # devices", document),
    Limit(Session.maximumCount, "user has at most # sessions", document, "docs/accounts.md"),
    Limit(Invitation.maximumGuests, "An event has at most # guests", document, "docs/sharing.md"),
    Limit(longest(Body.EventDraft.inviteeIds) ?? 0, "and a request at most #", document),
    Limit(Invitation.maximumGuests, "maxGuests: {type: [integer, 'null'], minimum: 1, maximum: #", document),
    Limit(FriendRequest.maximumPending, "at most # pending sent requests", document),
    Limit(FriendRequest.maximumPerDay, "at most # new ones in 24 hours", document),
    Limit(Report.maximumPerDay, "a user can send # reports in 24 hours", document),
    Limit(Report.maximumPerDay, "| new reports | # in 24 hours", "docs/accounts.md"),
    Limit(Passwords.length.lowerBound, "A password is # to", document),
    Limit(Passwords.length.lowerBound, "A password is # to", "docs/accounts.md"),
    Limit(Passwords.length.upperBound, "A password is 8 to # characters", document),
    Limit(Passwords.length.upperBound, "A password is 8 to # characters", "docs/accounts.md"),
    Limit(Passwords.length.lowerBound, "NewPassword: {type: string, format: password, minLength: #", document),
    Limit(
      Passwords.length.upperBound, "NewPassword: {type: string, format: password, minLength: 8, maxLength: #", document),
    Limit(EmailAddress.maximumLength, "format: email, minLength: 3, maxLength: #", document),
    Limit(SignInCode.length, "pattern: '^[0-9]{#}$'", document),
    Limit(Username.maximumLength, "Username: {type: string, minLength: 3, maxLength: #", document),
    Limit(Report.maximumText, "ReportText: {type: [string, 'null'], maxLength: #", document),
    Limit(WebhookAddress.maximumLength, "maxLength: #, pattern: '^[!-~]+$', x-rule: opaque deviceToken", document),
    Limit(Request.maximumBody >> 10, "A body may be at most # KiB", document),
    Limit(Picture.maximumLength >> 20, "a picture # MiB", document),
    Limit(Picture.maximumLength >> 20, "WebP or HEIC of at most # MiB", document, "docs/api-conventions.md"),
    Limit(
      (App.Operation.validateCache.attributes.body?.maximum ?? 0) >> 10, "a validation with `include=changes` # KiB",
      document),
    Limit(Snapshot.maximumLength >> 10, "collection of at most # KiB of JSON", document),
    Limit(Delta.maximumChanged >> 10, "`changed` has at most # KiB", document),
    Limit(
      HeldItems.limits.upperBound, "minimum: 1, maximum: #, description: 'The maximum number of items in `parts`",
      document),
    Limit(
      HeldItems.limits.upperBound * ItemDigest.length, "maxLength: #\n          pattern: '^([A-Za-z0-9_-]{11})*$'",
      document),
    Limit(ListParts.Size.maximum.compared >> 20, "share # MiB and", document),
    Limit(CalendarFeed.maximumEvents, "At most # events", "docs/calendars.md"),
    Limit(CalendarFeed.maximumZones, "each of at most # zones", "docs/calendars.md"),
    Limit(Event.maximumCounted, "an event with at most # invitations", "docs/caching.md"),
  ]

  /// The maximum number of elements that the rule of a list allows.
  private static func longest<Element>(_ member: Fields.Member<[Element]>) -> Int? {
    do throws(Fields.Broken) {
      _ = try member.rule().read(.array(Array(repeating: .null, count: 10_000)))
      return nil
    } catch {
      return error.errors.first?.message.firstMatch(of: /[0-9]+/).flatMap { Int($0.output) }
    }
  }

  @Test(arguments: limits)
  private func `documents say what the code does`(_ limit: Limit) throws {
    let parts = limit.phrase.split(separator: "#", omittingEmptySubsequences: false).map {
      NSRegularExpression.escapedPattern(for: String($0)).replacing(" ", with: #"\s+"#)
    }
    let pattern = try Regex("(?:\(parts[0]))([0-9][0-9,]*)(?:\(parts[1]))", as: (Substring, Substring).self)
    for file in limit.files {
      let text = try String(contentsOf: Program.checkout.appending(path: file), encoding: .utf8)
      let said = text.matches(of: pattern).map { $0.output.1.filter { $0 != "," } }
      #expect(Set(said) == ["\(limit.value)"], "\(file)")
    }
  }

  @Test func `messages name the limits`() {
    #expect(AppError.tooManyHosts.message.contains("\(Event.maximumCoHosts) "))
    #expect(AppError.tooManyLinks.message.contains("\(ShareLink.maximumPerEvent) "))
    #expect(AppError.tooManyDevices.message.contains("\(Device.maximum) "))
    #expect(AppError.bodyTooLarge.message.contains("\(Request.maximumBody >> 10) KiB"))
    #expect(AppError.formTooLarge.message.contains("\(Request.maximumForm >> 10) KiB"))
    let validation = App.Operation.validateCache.attributes
    #expect(
      validation.bodyTooLarge.message
        == "With include=changes, the body must be at most \(validation.maximumBody >> 10) KiB.")
    #expect(App.Operation.getMe.attributes.bodyTooLarge == .bodyTooLarge)
    #expect(AppError.pictureTooLarge.message.contains("\(Picture.maximumLength >> 20) MiB"))
  }
}
