import Foundation
import MusterKit

/// The Swift code of docs/getting-started.md as one program, in the order of the guide. Each part between `// snippet`
/// and `// end` is a block of the guide, word for word, and uses what the parts before it have defined.
@MainActor
struct GettingStarted {
  let server: URL
  let folder: URL
  let deviceToken: Data
  /// The act of another user once Ana's app shows banners.
  let meanwhile: (Event) async throws -> Void

  /// - Returns: the store as the app has it at the end, the event that Ana has answered, and her own.
  func run() async throws -> (store: MusterStore, answered: Event, own: Event) {
    // snippet
    let tokens = FileTokenStore(file: folder.appending(path: "tokens.json"))
    let client = MusterClient(baseURL: server, tokens: tokens)
    let ana = try await client.auth.logIn(as: "ana", password: "plans-with-friends", device: "Ana's iPhone")
    print("Hello, \(ana.displayName)")
    // end

    // snippet
    let store = try MusterStore(client: client, folder: folder)
    await store.load()
    print(store.events.items.map(\.title), "as of", store.events.upToDateAsOf ?? .distantPast)
    try await store.refresh()
    print(store.events.items.map(\.title), "now")
    store.start()
    // end

    // snippet
    if store.events.isUpToDate {
      print("This is what the server has.")
    } else if let date = store.events.upToDateAsOf {
      print("Up to date as of \(date.formatted()).")
    } else {
      print("Nothing is loaded yet.")
    }
    // end

    // snippet
    let invited = store.events.items.filter { $0.myStatus == .invited }
    if let event = invited.first {
      try await store.perform(.answer(.going, to: event.id))
      print(event.title, "is on its way:", store.outbox.isPending(event.id))
    }
    // end

    // snippet
    for refusal in store.outbox.refusals {
      print("Not done:", refusal)
      try await store.outbox.dismiss(refusal)
    }
    // end

    // snippet
    if let lina = try await client.users.search(for: "lina").first {
      let request = try await client.friends.requests.send(to: lina.id)
      print(request.status)
    }
    let ben = store.friends.items.filter { $0.user.username == "ben" }
    let draft = EventDraft(
      title: "Pasta night", startTime: .now.addingTimeInterval(86_400), inviteeIds: ben.map(\.id))
    let event = try await client.events.create(draft)
    print(event.title, event.counts?.invited ?? 0)
    // end

    // snippet
    let banners = Task {
      for try await news in client.notifications.stream() {
        switch news {
        case .connected: print("live")
        case .notification(let item): print(item.message)
        case .changed(let stamps): print("changed:", stamps.keys.map(\.rawValue))
        }
      }
    }
    // end
    defer { banners.cancel() }
    try await meanwhile(event)

    // snippet
    let token = deviceToken.map { String(format: "%02x", $0) }.joined()
    try await client.devices.register(
      DeviceRegistration(platform: .ios, token: token, environment: .sandbox, topic: "com.example.plans"))
    // end
    return (store, invited[0], event)
  }
}
