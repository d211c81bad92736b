import Foundation
import MusterKit

/// A client in a process of its own, for tests that need two at once, or one that they can kill.
///
///     test-client calls URL TOKENS COUNT           makes calls at once
///     test-client writes URL TOKENS FOLDER FIRST   performs numbered writes on a store until it is killed
///     test-client again URL TOKENS FOLDER          sends again what was refused, and waits until it is sent
///     test-client full URL TOKENS FOLDER           performs writes with and without room on the disk
///     test-client settle URL TOKENS FOLDER         sends what the store has not sent
///
/// TOKENS is the file with the tokens of a user who is logged in, FOLDER the store's.
@main @MainActor struct TestClient {
  static func main() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    guard arguments.count >= 3, let url = URL(string: arguments[1]) else { end("usage: see the source") }
    let retries = RetryPolicy(maximumAttempts: 6, baseDelay: 0.01, maximumDelay: 0.1)
    let tokens = FileTokenStore(file: URL(filePath: arguments[2]))
    let client = MusterClient(baseURL: url, tokens: tokens, retries: retries)
    let last = arguments.count > 4 ? Int(arguments[4]) ?? 0 : 0
    do {
      switch arguments[0] {
      case "calls": try await call(client, times: Int(arguments[3]) ?? 0)
      case "writes": try await write(try MusterStore(client: client, folder: URL(filePath: arguments[3])), from: last)
      case "again": try await sendAgain(try MusterStore(client: client, folder: URL(filePath: arguments[3])))
      case "full": try await fill(client, try MusterStore(client: client, folder: URL(filePath: arguments[3])))
      case "settle": try await settle(try MusterStore(client: client, folder: URL(filePath: arguments[3])))
      default: end("usage: see the source")
      }
    } catch {
      end("\(error)")
    }
  }

  private static func call(_ client: MusterClient, times: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<times { group.addTask { _ = try await client.me.get() } }
      try await group.waitForAll()
    }
    say("done")
  }

  /// Each write is on the disk when its number is printed. Every third one is an edit of what the one before created,
  /// which may not have been sent yet.
  private static func write(_ store: MusterStore, from first: Int) async throws {
    store.start()
    var event = Event.ID()
    for number in first... {
      if number.isMultiple(of: 3) {
        event = Event.ID()
        try await store.perform(.createEvent(draft("Event \(number)"), id: event))
      } else if number % 3 == 1, first < number {
        try await store.perform(.editEvent(event, applying: EventEdit(note: .set("Note \(number)"))))
      } else {
        try await store.perform(.editProfile(ProfileEdit(bio: .set("\(number)"))))
      }
      say("performed \(number)")
      try await Task.sleep(for: .milliseconds(.random(in: 0...20)))
    }
  }

  private static func draft(_ title: String) -> EventDraft {
    let start = Date(timeIntervalSince1970: 1_900_000_000)
    return EventDraft(title: title, startTime: start, timeZone: TimeZone(identifier: "Europe/Berlin") ?? .gmt)
  }

  /// First, this process may write no bytes to files, as on a full disk.
  private static func fill(_ client: MusterClient, _ store: MusterStore) async throws {
    try await store.refresh()
    // Without this, the system would end the process.
    signal(SIGXFSZ, SIG_IGN)
    limitFiles(to: 0)
    do {
      try await store.perform(.createEvent(draft("Lost")))
    } catch StoreError.disk {
      say("disk")
    }
    _ = try await client.events.create(draft("Direct"))
    try await refreshAndSay(store)
    limitFiles(to: .max)
    try await store.perform(.createEvent(draft("Later")))
    try await refreshAndSay(store)
  }

  private static func refreshAndSay(_ store: MusterStore) async throws {
    try await store.refresh()
    var error = "no error"
    if let last = store.lastError {
      error = if case .disk = last as? StoreError { "disk" } else { "\(last)" }
    }
    say("events \(store.events.items.count), \(error)")
  }

  private static func limitFiles(to bytes: rlim_t) {
    var limit = rlimit(rlim_cur: bytes, rlim_max: .max)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
  }

  /// As if the user chose this for each refusal.
  private static func sendAgain(_ store: MusterStore) async throws {
    store.start()
    for refusal in store.outbox.refusals {
      try await store.sendAgain(refusal)
      say("again \(refusal.id)")
    }
    while !store.outbox.pending.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
    say("done")
  }

  private static func settle(_ store: MusterStore) async throws {
    while true {
      do {
        try await store.refresh()
        break
      } catch MusterError.unreachable {
        try await Task.sleep(for: .milliseconds(20))
      }
    }
    for refusal in store.outbox.refusals { say("refused \(String(describing: refusal.write)) \(refusal.reason)") }
    say("pending \(store.outbox.pending.count)")
  }

  /// Prints a line without buffering.
  private static func say(_ text: String) {
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
  }

  private static func end(_ reason: String) -> Never {
    FileHandle.standardError.write(Data((reason + "\n").utf8))
    exit(1)
  }
}
