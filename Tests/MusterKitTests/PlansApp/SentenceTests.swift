import Foundation
import Testing

@testable import MusterKit
@testable import PlansAppModels

/// The user reads sentences, and no words of the API.
@Suite struct AppSentenceTests {
  /// The operations that the app calls, and that the service may refuse for a reason of the domain.
  private static let operations = [
    "register", "login", "signInWithApple", "sendFriendRequest", "acceptFriendRequest", "declineFriendRequest",
    "cancelFriendRequest", "createEvent", "editEvent", "cancelEvent", "inviteToEvent", "withdrawInvitation",
    "answerInvitation", "approveGuest", "createLink", "joinByLink", "getEvent", "listGuests", "editMe", "deleteMe",
    "report",
  ]
  /// The library handles these, or they say nothing that a user could act on.
  private static let others: Set = ["request-running", "idempotency-key-reused", "invalid-fields", "superseded"]

  @Test func `each refusal that the document names for the app's calls has a sentence`() throws {
    let document = try PublishedDocument()
    var slugs: Set<String> = []
    for (_, _, node) in try document.operations() where Self.operations.contains(node["operationId"] as? String ?? "") {
      let responses = try #require(node["responses"] as? PublishedDocument.Node)
      for status in ["401", "403", "404", "409"] {
        guard let response = responses[status] as? PublishedDocument.Node else { continue }
        if status == "401", response["$ref"] != nil { continue }
        let text = try document.resolved(response)["description"] as? String ?? ""
        slugs.formUnion(text.matches(of: /`([a-z]+(?:-[a-z]+)+)`/).map { String($0.1) })
      }
    }
    slugs.subtract(Self.others)
    #expect(slugs.isSuperset(of: ["answers-closed", "no-room", "approval-pending", "link-full", "username-taken"]))
    for slug in slugs.sorted() {
      #expect(Problem.Slug(rawValue: slug).sentence != nil, "\(slug) needs a sentence.")
    }
  }

  @Test func `a problem that the app does not know is described by its status`() {
    func sentence(_ status: Int, _ slug: Problem.Slug = "from-the-future", wait: Int? = nil) -> String {
      Problem(type: slug, title: "?", status: status, retryAfter: wait).sentence
    }
    #expect(sentence(409) == "This is not possible. Please refresh.")
    #expect(sentence(503) == "The server is busy. Please try again later.")
    #expect(sentence(429, .tooManyFriendRequests, wait: 172_800) == "Too many attempts. Please wait 2 days.")
    #expect(sentence(429, .tooManyAttempts, wait: 30) == "Too many attempts. Please wait 30 seconds.")
  }

  @Test func `words of the API are not shown`() {
    for reason in ReportReason.known { #expect(reason.title.first?.isUppercase == true && reason.title.count > 3) }
    for status in GuestStatus.known { #expect(status.title != status.rawValue && status.title != "Other") }
    #expect(GuestStatus(rawValue: "from-the-future").title == "Other")
    let reasons: [Answerability.Reason] = [
      .hosting, .cancelled, .archived, .pending, .closed, .noRoom, .noPlusOnes, .tooManyPlusOnes(maximum: 3),
    ]
    let sentences = reasons.map(\.sentence)
    #expect(Set(sentences).count == reasons.count && !sentences.contains("This is not possible."))
    #expect(StoreError.disk("ENOSPC").sentence == "Your phone is full. Please make room and try again.")
    #expect(MusterError.tokensUnavailable("-25308").sentence == "Please unlock your phone and try again.")
  }
}
