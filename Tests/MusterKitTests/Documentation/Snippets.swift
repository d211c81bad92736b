import Foundation
import MusterKit

/// The Swift code of the guides. Each part between `// snippet` and `// end` is a block of a guide, word for word:
/// `SnippetTests` compares them.
enum Snippets {
  static func client(server: URL, folder: URL) async throws {
    // snippet
    let tokens = FileTokenStore(file: folder.appending(path: "tokens.json"))
    let client = MusterClient(baseURL: server, tokens: tokens)
    let ana = try await client.auth.logIn(as: "ana", password: "plans-with-friends", device: "Ana's iPhone")
    print("Hello, \(ana.displayName)")
    // end
  }

  static func calls(_ client: MusterClient, ben: User.ID) async throws {
    // snippet
    let request = try await client.friends.requests.send(to: ben)
    let draft = EventDraft(title: "Pasta night", startTime: .now.addingTimeInterval(86_400), inviteeIds: [ben])
    let event = try await client.events.create(draft)
    print(request.status, event.counts?.invited ?? 0)
    // end
  }

  static func pages(_ client: MusterClient, event: Event.ID) async throws {
    // snippet
    for try await page in client.events.guestPages(of: event) {
      print(page.items.map(\.name))
    }
    for try await friend in client.friends.pages(limit: 100).items {
      print(friend.user.displayName)
    }
    let inbox = Pages { try await client.notifications.list(unread: true, cursor: $0) }
    // end
    _ = inbox
  }

  static func people(_ client: MusterClient) async throws {
    // snippet
    for user in try await client.users.search(for: "okafro") {
      switch user.friendship {
      case .friends: print(user.displayName, "is a friend")
      case .requested: print(user.displayName, "has your request")
      case .requesting: print(user.displayName, "has asked you")
      default: print(user.displayName, "and you have", user.mutualFriendCount, "friends in common")
      }
    }
    // end
  }

  static func answering(_ event: Event) {
    // snippet
    switch event.canAnswer() {
    case .yes: print("Going?")
    case .waitlist: print("Full: join the waiting list?")
    case .no(.closed): print("The deadline has passed. A host can still set your answer.")
    case .no(let reason): print("You cannot answer:", reason)
    }
    if event.canAnswer(.going, bringing: 2).reason == .noRoom { print("There is no room for three.") }
    // end
  }

  static func errors(_ client: MusterClient, event: Event.ID) async throws {
    // snippet
    do {
      try await client.events.answer(.going, to: event)
    } catch MusterError.refused(let problem) where problem.type == .eventCancelled {
      print("This event was cancelled.")
    } catch MusterError.refused(let problem) where problem.type == .invalidFields {
      print(problem.errors.map { "\($0.field): \($0.code)" })
    } catch MusterError.loggedOut {
      print("Show the login.")
    } catch MusterError.unreachable {
      print("Offline, or the answer may have been sent: ask again later.")
    }
    // end
  }

  #if canImport(Security)
    static func keychain(server: URL) -> MusterClient? {
      // snippet
      let group = "group.com.example.plans"
      let folder = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)
      guard let folder else { return nil }
      let tokens = KeychainTokenStore(service: "plans", accessGroup: "TEAMID.com.example.plans", lockFolder: folder)
      return MusterClient(baseURL: server, tokens: tokens)
      // end
    }
  #endif

  static func retries(server: URL, _ client: MusterClient, event: Event.ID) async throws {
    // snippet
    let patient = MusterClient(baseURL: server, retries: RetryPolicy(maximumAttempts: 6, totalTime: 120))
    let key = IdempotencyKey.random()
    try await client.events.answer(.going, to: event, key: key)
    // end
    _ = patient
  }

  static func edits(_ client: MusterClient, _ event: Event) async throws {
    // snippet
    let edit = EventEdit(title: "Pasta and games", note: .clear, capacity: .set(8))
    do {
      try await client.events.edit(event.id, applying: edit, ifVersion: event.version)
    } catch MusterError.refused(let problem) where problem.type == .lostUpdate {
      print("The event was edited meanwhile: show it again.")
    }
    // end
  }

  @MainActor static func store(_ client: MusterClient, folder: URL) async throws {
    // snippet
    let store = try MusterStore(client: client, folder: folder)
    await store.load()
    print(store.events.items.map(\.title), "as of", store.events.upToDateAsOf ?? .distantPast)
    try await store.refresh()
    print(store.events.items.map(\.title), "now")
    // end
  }

  @MainActor static func opened(_ store: MusterStore, _ event: Event) async throws {
    // snippet
    let opened = store.opened(event.id)
    print(opened.event?.title ?? "?", opened.event?.guests?.items.map(\.name) ?? [])
    try await opened.refresh()
    // end
  }

  @MainActor static func claims(_ store: MusterStore) {
    // snippet
    if store.events.isUpToDate {
      print("This is what the server has.")
    } else if let date = store.events.upToDateAsOf {
      print("Up to date as of \(date.formatted()).")
    } else {
      print("Nothing is loaded yet.")
    }
    // end
  }

  @MainActor static func outbox(_ store: MusterStore, event: Event.ID) async throws {
    // snippet
    try await store.perform(.answer(.going, to: event))
    print(store.outbox.isPending(event))
    for refusal in store.outbox.refusals {
      print("Not done:", refusal)
      try await store.outbox.dismiss(refusal)
    }
    // end
  }

  @MainActor static func unknownOutcomes(_ store: MusterStore) async throws {
    // snippet
    for refusal in store.outbox.refusals where refusal.isUnknown && refusal.write != nil {
      print("Perhaps done:", refusal)
      try await store.sendAgain(refusal)
    }
    // end
  }

  static func otherUsers(_ client: MusterClient, folder: URL) async throws {
    // snippet
    let unsent = try MusterStore.usersWithUnsentWrites(in: folder)
    for user in unsent where user != client.userID {
      // Ask first: these writes were never sent.
      try await MusterStore.forgetEverything(of: user, in: folder)
    }
    // end
  }

  @MainActor static func lastError(_ store: MusterStore) {
    // snippet
    if let error = store.lastError {
      print(store.isOffline ? "You are offline." : error.localizedDescription)
    }
    // end
  }

  static func hosts(_ client: MusterClient, event: Event.ID, ben: User.ID, cleo: User.ID) async throws {
    // snippet
    try await client.events.addHost(ben, to: event)
    try await client.events.setAnswer(of: Guest.ID(cleo), at: event, to: .going)
    print(try await client.events.remindGuests(of: event), "guests were reminded")
    // end
  }

  static func links(_ client: MusterClient, _ other: MusterClient, event: Event.ID) async throws {
    // snippet
    let link = try await client.events.links.create(ShareLinkDraft(kind: .answer, maxGuests: 20), for: event)
    if let url = link.url, let token = ShareLink.token(in: url) {
      try await other.links.join(using: token)
    }
    // end
  }

  @MainActor static func newerStates(_ store: MusterStore) async throws {
    // snippet
    for refusal in store.outbox.refusals {
      guard case .answer(let status, _)? = refusal.newerState else { continue }
      print("You have answered \(status) elsewhere. Change that again?", refusal)
      try await store.sendAgain(refusal)
    }
    // end
  }

  @MainActor static func ownIDs(_ store: MusterStore, ben: User.ID) async throws {
    // snippet
    let id = Event.ID()
    let draft = EventDraft(title: "Pasta night", startTime: .now.addingTimeInterval(86_400))
    try await store.perform(.createEvent(draft, id: id))
    try await store.perform(.invite([ben], to: id))
    // end
  }

  @MainActor static func arrivals(_ store: MusterStore) async {
    // snippet
    for await item in store.arrivals {
      print("New:", item.message)
    }
    // end
  }

  static func stream(_ client: MusterClient) async throws {
    // snippet
    for try await event in client.notifications.stream() {
      switch event {
      case .connected: print("live")
      case .notification(let item): print(item.message)
      case .changed(let stamps): print("changed:", stamps.keys.map(\.rawValue))
      }
    }
    // end
  }

  static func push(_ client: MusterClient, deviceToken: Data) async throws {
    // snippet
    let token = deviceToken.map { String(format: "%02x", $0) }.joined()
    try await client.devices.register(
      DeviceRegistration(platform: .ios, token: token, environment: .sandbox, topic: "com.example.plans"))
    // end
  }

  @MainActor static func previews(export: URL, folder: URL) async throws {
    // snippet
    let slow = try PreviewClient.make(folder: export, latency: 2)
    let problem = Problem(type: .eventCancelled, title: "Conflict", status: 409)
    let refusal = PreviewFailures.refusing("/events/*", method: "PUT", with: problem)
    let refusing = try PreviewClient.make(folder: export, failures: refusal)
    let store = try MusterStore(client: PreviewClient.make(folder: export), folder: folder)
    try await store.refresh()
    // end
    _ = (slow, refusing)
  }
}
