import Foundation
import MusterKit

/// Plans with friends, in a terminal: a feed by day, the page of an event, answers, a search, new events and the inbox.
/// All but the search also works without a network, and what the user changes is sent by the next run that has one.
///
///     plans FOLDER http://127.0.0.1:8080 login ana plans-with-friends
///     plans FOLDER http://127.0.0.1:8080 answer pasta going 1
@main @MainActor struct Plans {
  private let client: MusterClient
  private let store: MusterStore

  static func main() async {
    do {
      try await run(Array(CommandLine.arguments.dropFirst()))
    } catch let failure as Failure {
      end(failure.description)
    } catch MusterError.loggedOut {
      end("You are logged out. Please log in.")
    } catch MusterError.unreachable {
      end("There is no connection.")
    } catch MusterError.refused(let problem) where problem.type == .wrongCredentials {
      end("The name or the password is wrong.")
    } catch {
      end("Something went wrong: \(error)")
    }
  }

  private struct Failure: Error, CustomStringConvertible {
    let description: String

    static let usage = Failure(
      description: """
        usage: plans FOLDER SERVER login NAME PASSWORD
               plans FOLDER SERVER feed | inbox | read
               plans FOLDER SERVER event TITLE
               plans FOLDER SERVER answer TITLE going|maybe|declined [PLUS-ONES]
               plans FOLDER SERVER search NAME
               plans FOLDER SERVER ask NAME
               plans FOLDER SERVER create TITLE HOURS-FROM-NOW [FRIEND...]
        """)
  }

  private static func end(_ message: String) -> Never {
    print(message)
    exit(1)
  }

  private static func run(_ words: [String]) async throws {
    guard words.count > 2, let server = URL(string: words[1]) else { throw Failure.usage }
    let folder = URL(filePath: words[0], directoryHint: .isDirectory)
    let client = MusterClient(
      baseURL: server, tokens: FileTokenStore(file: folder.appending(path: "tokens.json")))
    if words[2] == "login", words.count == 5 {
      let user = try await client.auth.logIn(as: words[3], password: words[4], device: "Terminal")
      return print("Hello, \(user.displayName).")
    }
    let plans = Plans(client: client, store: try MusterStore(client: client, folder: folder))
    await plans.catchUp()
    try await plans.perform(words[2], Array(words.dropFirst(3)))
    try await plans.showOutbox()
  }

  /// Without a network, the copies of the last run stay.
  private func catchUp() async {
    await store.load()
    try? await store.refresh()
  }

  private func perform(_ command: String, _ words: [String]) async throws {
    switch (command, words.count) {
    case ("feed", 0): showFeed()
    case ("event", 1): try await showEvent(find(words[0]))
    case ("answer", 2...3): try await answer(find(words[0]), words[1], plusOnes: words.count == 3 ? Int(words[2]) : nil)
    case ("search", 1): try await search(words[0])
    case ("ask", 1): try await ask(words[0])
    case ("create", 2...): try await create(words[0], hours: Double(words[1]), inviting: words.dropFirst(2))
    case ("inbox", 0): showInbox()
    case ("read", 0): try await send(.markAllRead())
    default: throw Failure.usage
    }
  }

  /// Shows a change at once, keeps it, and sends it now if there is a network.
  private func send(_ write: Write) async throws {
    try await store.perform(write)
    try? await store.refresh()
  }

  private func find(_ title: String) throws -> Event {
    guard let event = store.events.items.first(where: { $0.title.localizedStandardContains(title) }) else {
      throw Failure(description: "No event is called “\(title)”.")
    }
    return event
  }

  // MARK: Events

  private func showFeed() {
    for day in store.events.items.byDay() {
      print(day.date.formatted(date: .complete, time: .omitted))
      for event in day.events {
        let time = event.startTime.formatted(date: .omitted, time: .shortened)
        let going = event.counts.map { ", \($0.going) going" } ?? ""
        let mark = store.outbox.isPending(event.id) ? " (not sent yet)" : ""
        print("  \(time)  \(event.title): \(part(in: event))\(going)\(mark)")
      }
    }
  }

  private func part(in event: Event) -> String {
    if event.status == .cancelled { return "cancelled" }
    guard event.myRole == .guest else { return "you host" }
    return switch event.myStatus {
    case .invited: "what do you say?"
    case .pending: "a host must approve you"
    case .waitlisted: "you wait for a place"
    default: "you: \(event.myStatus)" + (event.myPlusOnes > 0 ? " +\(event.myPlusOnes)" : "")
    }
  }

  private func showEvent(_ event: Event) async throws {
    let opened = store.opened(event.id)
    await opened.load()
    try? await opened.refresh()
    guard let event = opened.event else { throw Failure(description: "This event is gone.") }
    var style = Date.FormatStyle(date: .complete, time: .shortened)
    style.timeZone = event.timeZone
    print(event.title)
    print(event.startTime.formatted(style), event.location.map { "at \($0.name)" } ?? "")
    print("by", event.hosts.map(\.displayName).formatted(.list(type: .and)))
    if let note = event.note { print(note) }
    guard let guests = event.guests else { return print("The guests are not on this device yet.") }
    for guest in guests.items {
      print("  \(guest.name): \(guest.status)" + (guest.plusOnes > 0 ? " +\(guest.plusOnes)" : ""))
    }
    if guests.nextCursor != nil { print("  and more") }
    print(sentence(for: event.canAnswer()))
  }

  private func answer(_ event: Event, _ word: String, plusOnes: Int?) async throws {
    guard let answer = [Answer.going, .maybe, .declined].first(where: { $0.rawValue == word }) else {
      throw Failure.usage
    }
    let answerability = event.canAnswer(answer, bringing: plusOnes)
    guard answerability.reason == nil else { throw Failure(description: sentence(for: answerability)) }
    try await send(.answer(answer, to: event.id, plusOnes: plusOnes))
    print("\(event.title): \(part(in: try find(event.title)))")
  }

  private func sentence(for answerability: Answerability) -> String {
    switch answerability {
    case .yes: "You can answer."
    case .waitlist: "The event is full. You can wait for a place."
    case .no(.hosting): "You host this event."
    case .no(.cancelled): "The event is cancelled."
    case .no(.archived): "The event is over."
    case .no(.pending): "A host must approve you first."
    case .no(.closed): "It is too late to answer. A host can still set your answer."
    case .no(.noRoom): "There is no room for that many people."
    case .no(.noPlusOnes): "Guests bring no one."
    case .no(.tooManyPlusOnes(let maximum)): "You can bring \(maximum)."
    }
  }

  private func create(_ title: String, hours: Double?, inviting names: ArraySlice<String>) async throws {
    guard let hours else { throw Failure.usage }
    let invitees = try names.map { name in
      guard let friend = store.friends.items.first(where: { $0.user.username == name }) else {
        throw Failure(description: "\(name) is no friend of yours.")
      }
      return friend.id
    }
    try await send(
      .createEvent(EventDraft(title: title, startTime: .now.addingTimeInterval(hours * 3600), inviteeIds: invitees)))
    print("You host “\(title)”.")
  }

  // MARK: People

  private func search(_ name: String) async throws {
    for user in try await client.users.search(for: name) {
      print("\(user.displayName) (\(user.username)): \(relation(to: user))")
    }
  }

  private func relation(to user: FoundUser) -> String {
    switch user.friendship {
    case .friends: "a friend"
    case .requested: "has your request"
    case .requesting: "has asked you"
    default: "\(user.mutualFriendCount) friends in common"
    }
  }

  private func ask(_ name: String) async throws {
    guard let user = try await client.users.search(for: name).first else {
      throw Failure(description: "No one is called \(name).")
    }
    guard user.friendship == .none else { throw Failure(description: "\(user.displayName): \(relation(to: user)).") }
    try await send(.sendRequest(to: user.person))
    print("You have asked \(user.displayName).")
  }

  // MARK: The inbox, and what is left to do

  private func showInbox() {
    print("Unread: \(store.notifications.unreadCount)\(store.notifications.hasMore ? " or more" : "")")
    for item in store.notifications.items { print(item.readAt == nil ? "*" : " ", item.message) }
  }

  private func showOutbox() async throws {
    if store.isOffline, let date = store.events.upToDateAsOf {
      print("You are offline. This is as of \(date.formatted()).")
    } else if let error = store.lastError {
      print("Not up to date: \(error.localizedDescription)")
    }
    if !store.outbox.pending.isEmpty { print("Changes that wait for a network: \(store.outbox.pending.count)") }
    for refusal in store.outbox.refusals {
      print(refusal.isUnknown ? "Perhaps not done:" : "Not done:", refusal.write.map { "\($0)" } ?? "a change")
      try await store.outbox.dismiss(refusal)
    }
  }
}
