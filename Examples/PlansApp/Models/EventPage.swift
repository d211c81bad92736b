import Foundation
import MusterKit
import Observation

/// One event, and the user's answer. Once opened, it also shows without a network.
@MainActor @Observable
final class EventPage {
  let id: Event.ID
  let home: Home
  private(set) var failure: String?
  private let opened: OpenedEvent
  /// The number of people whom the user wants to bring, until they answer.
  private var wantedPlusOnes: Int?

  init(_ id: Event.ID, in home: Home) { (self.id, self.home, opened) = (id, home, home.store.opened(id)) }

  var event: Event? { opened.event }
  /// The changes of this event that did not happen. The event shows its earlier state.
  var refusals: Refusals { Refusals(home: home, subject: id.rawValue) }
  var isPending: Bool { home.store.outbox.isPending(id) }

  func load() async { failure = await Home.failure { try await opened.refresh() } }

  func refresh() async {
    await home.refresh()
    await load()
  }
}

/// The user's answer, with the people whom they bring.
extension EventPage {
  struct Choice: Identifiable, Hashable {
    let answer: Answer
    let isChosen: Bool
    let isPossible: Bool
    /// Why it is not possible, or where it leads.
    let note: String?
    var id: Answer { answer }
  }

  /// The rules are the library's. A host has no answer.
  var choices: [Choice] {
    guard let event, event.myRole == .guest else { return [] }
    let isClosed = event.canAnswer().reason == .closed
    return Answer.allCases.map { answer in
      let verdict = isClosed ? .no(.closed) : event.canAnswer(answer, bringing: people(for: answer))
      return Choice(
        answer: answer, isChosen: event.myStatus.rawValue == answer.rawValue, isPossible: verdict.reason == nil,
        note: verdict == .waitlist ? "Joins the waiting list" : verdict.reason?.sentence)
    }
  }

  var canAnswer: Bool { choices.contains(where: \.isPossible) }

  /// About all choices together.
  var answerNote: String? {
    if isPending { return "Not sent yet." }
    if !canAnswer, let reason = choices.first?.note { return reason }
    return event?.myStatus == .waitlisted ? "You are on the waiting list." : nil
  }

  var maximumPlusOnes: Int { event?.maxPlusOnes ?? 0 }
  var plusOnes: Int {
    get { wantedPlusOnes ?? event?.myPlusOnes ?? 0 }
    set { Task { await bring(newValue) } }
  }

  /// Changes an answer that the user has given, and else waits for one.
  func bring(_ number: Int) async {
    wantedPlusOnes = number
    if let event, event.myStatus != .declined, let given = Answer(rawValue: event.myStatus.rawValue) {
      await answer(given)
    }
  }

  func answer(_ answer: Answer) async {
    await home.perform(.answer(answer, to: id, plusOnes: people(for: answer)))
    wantedPlusOnes = nil
  }

  private func people(for answer: Answer) -> Int? { maximumPlusOnes > 0 && answer != .declined ? plusOnes : nil }
}
