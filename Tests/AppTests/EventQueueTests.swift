import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

@Suite struct EventQueueTests {
  /// What happened, in order.
  private final class Record: Sendable {
    private let kept = Mutex<[Int]>([])

    var numbers: [Int] { kept.withLock { $0 } }

    func add(_ number: Int) { kept.withLock { $0.append(number) } }
  }

  /// Somebody who has the turn at an event until told to end.
  private final class Holder: Sendable {
    private let gate = AsyncStream.makeStream(of: Void.self)
    private let task: Task<Void, any Error>

    init(_ queue: EventQueue, at event: Event.ID) async throws {
      let stream = gate.stream
      task = Task { try await queue.turn(at: event) { for await _ in stream {} } }
      try await eventually { queue.waiting(at: event) != nil }
    }

    func end() async throws {
      gate.continuation.finish()
      try await task.value
    }
  }

  @Test func `turns come in the order of asking`() async throws {
    let (queue, event, record) = (EventQueue(), Event.ID.new(), Record())
    let holder = try await Holder(queue, at: event)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 1...20 {
        group.addTask { try await queue.turn(at: event) { record.add(number) } }
        try await eventually { queue.waiting(at: event) == number }
      }
      #expect(record.numbers.isEmpty)
      try await holder.end()
      try await group.waitForAll()
    }
    #expect(record.numbers == Array(1...20))
    #expect(queue.isIdle)
  }

  @Test func `one at a time writes to an event, and others to other events meanwhile`() async throws {
    let (queue, record) = (EventQueue(), Record())
    let events = (0..<4).map { _ in Event.ID.new() }
    let busy = Rooms(events.count)
    let holder = try await Holder(queue, at: .new())
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<400 {
        group.addTask {
          try await queue.turn(at: events[number % events.count]) {
            if busy.enter(number % events.count) > 1 { record.add(number) }
            await Task.yield()
            busy.leave(number % events.count)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(record.numbers.isEmpty)
    #expect(!queue.isIdle)
    try await holder.end()
    #expect(queue.isIdle)
  }

  /// How many are inside, for each of a few rooms.
  private final class Rooms: Sendable {
    private let inside: Mutex<[Int]>

    init(_ count: Int) { inside = Mutex(Array(repeating: 0, count: count)) }

    func enter(_ room: Int) -> Int {
      inside.withLock { inside in
        inside[room] += 1
        return inside[room]
      }
    }

    func leave(_ room: Int) { inside.withLock { $0[room] -= 1 } }
  }

  @Test func `whoever gives up leaves the line, and those behind move up`() async throws {
    let (queue, event, record) = (EventQueue(), Event.ID.new(), Record())
    let holder = try await Holder(queue, at: event)
    let first = Task { try await queue.turn(at: event) { record.add(1) } }
    try await eventually { queue.waiting(at: event) == 1 }
    let second = Task { try await queue.turn(at: event) { record.add(2) } }
    try await eventually { queue.waiting(at: event) == 2 }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(queue.waiting(at: event) == 1)
    try await holder.end()
    try await second.value
    #expect(record.numbers == [2])
    #expect(queue.isIdle)
  }

  @Test func `however many give up at whatever moment, everybody ends and nothing is left`() async throws {
    let queue = EventQueue()
    var random = SeededRandom(seed: 5)
    for _ in 0..<20 {
      let event = Event.ID.new()
      let record = Record()
      let tasks = (0..<60).map { number in
        Task {
          try await queue.turn(at: event) {
            await Task.yield()
            record.add(number)
          }
        }
      }
      for task in tasks where Bool.random(using: &random) {
        task.cancel()
        if Int.random(in: 0..<3, using: &random) == 0 { await Task.yield() }
      }
      var served = 0
      for task in tasks {
        switch await task.result {
        case .success: served += 1
        case .failure(let error): #expect(error is CancellationError)
        }
      }
      #expect(record.numbers.count == served)
      #expect(queue.isIdle)
    }
  }

  @Test func `beyond a bound nobody is let into the line`() async throws {
    let (queue, event) = (EventQueue(capacity: 2), Event.ID.new())
    let holder = try await Holder(queue, at: event)
    let waiting = (0..<2).map { _ in Task { try await queue.turn(at: event) {} } }
    try await eventually { queue.waiting(at: event) == 2 }
    let refusal = await #expect(throws: AppError.self) { try await queue.turn(at: event) {} }
    #expect(refusal?.slug == "busy")
    #expect(refusal?.retryAfter == 2)
    try await queue.turn(at: .new()) {}
    // Who gives up makes room.
    waiting[0].cancel()
    try await eventually { queue.waiting(at: event) == 1 }
    let late = Task { try await queue.turn(at: event) {} }
    try await eventually { queue.waiting(at: event) == 2 }
    try await holder.end()
    try await waiting[1].value
    try await late.value
    #expect(queue.isIdle)
  }

  @Test func `whoever has waited too long is turned away`() async throws {
    let (queue, event, record) = (EventQueue(patience: .zero), Event.ID.new(), Record())
    let holder = try await Holder(queue, at: event)
    let waiting = (0..<3).map { number in Task { try await queue.turn(at: event) { record.add(number) } } }
    try await eventually { queue.waiting(at: event) == 3 }
    try await holder.end()
    for task in waiting {
      let refusal = await #expect(throws: AppError.self) { try await task.value }
      #expect(refusal?.slug == "busy")
    }
    #expect(record.numbers.isEmpty)
    #expect(queue.isIdle)
    // Nobody waits where nobody writes.
    try await queue.turn(at: event) { record.add(1) }
    #expect(record.numbers == [1])
  }

  @Test func `a turn that fails ends like any other`() async throws {
    let (queue, event) = (EventQueue(), Event.ID.new())
    for _ in 0..<2 {
      await #expect(throws: AppError.eventNotFound) {
        try await queue.turn(at: event) { () -> Void in throw AppError.eventNotFound }
      }
    }
    #expect(queue.isIdle)
  }

  /// They may know an event's id from when they were invited.
  @Test func `strangers do not stand in an event's line`() async throws {
    try await TestApp.run { app in
      let (ana, cleo) = (try await app.signUp("ana"), try await app.signUp("cleo"))
      let guests = try await app.crowd(4, around: ana)
      let id = try await ana.createEvent(inviting: guests)["id"].string ?? ""
      let event = try #require(Event.ID(id))
      let queue = app.dependencies.eventQueue
      let calls: [(method: String, path: String, body: String?)] = [
        ("PATCH", "events/\(id)", #"{"title": "Mine"}"#), ("DELETE", "events/\(id)", nil),
        ("PUT", "events/\(id)/invitations/me", #"{"status": "going"}"#),
        ("POST", "events/\(id)/invitations", #"{"userIds": ["\#(ana.id)"]}"#),
        ("DELETE", "events/\(id)/invitations/\(guests[0].id)", nil),
      ]
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      try await app.withConnections(16) {
        let answering = try await holder.transaction { transaction in
          try await transaction.rows("SELECT 1 FROM events WHERE id = \(event) FOR UPDATE")
          let tasks = guests.map { guest in Task { try await guest.answer("going", to: id) } }
          try await eventually { queue.waiting(at: event) == guests.count - 1 }
          for (method, path, body) in calls {
            let answer = try await cleo.send(method, path, body)
            #expect(answer.status == 404 && answer.problem == "event-not-found", "\(method) \(path): \(answer.body)")
          }
          // Its host waits with the guests.
          let editing = Task { try await ana.edit(id, #"{"title": "Dinner"}"#) }
          try await eventually { queue.waiting(at: event) == guests.count }
          return tasks + [editing]
        }
        for task in answering { _ = try await task.value }
      }
      #expect(queue.isIdle)
      // The same without a line.
      for (method, path, body) in calls {
        let answer = try await cleo.send(method, path, body)
        #expect(answer.status == 404 && answer.problem == "event-not-found", "\(method) \(path): \(answer.body)")
      }
      let seen = try await ana.get("events/\(id)")
      #expect(seen["counts"]["going"].int == guests.count && seen["title"].string == "Dinner")
      try await app.takeNotifications()
    }
  }

  /// As many as there are connections, and more, want to write to one event that somebody else has locked.
  @Test func `one popular event does not stop writes to others`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let guests = try await app.crowd(40, around: ana)
      let id = try await ana.createEvent(inviting: guests)["id"].string ?? ""
      let event = try #require(Event.ID(id))
      let blocker = try Database(Database.Configuration(url: app.databaseURL))
      defer { blocker.close() }
      let gate = AsyncStream.makeStream(of: Void.self)
      let locked = AsyncStream.makeStream(of: Void.self)
      async let holding: Void = blocker.transaction { transaction in
        try await transaction.rows("SELECT 1 FROM events WHERE id = \(event) FOR UPDATE")
        locked.continuation.finish()
        for await _ in gate.stream {}
      }
      for await _ in locked.stream {}
      try await app.withConnections(64) {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for guest in guests { group.addTask { _ = try await guest.answer("going", to: id) } }
          try await eventually { app.dependencies.eventQueue.waiting(at: event) == guests.count - 1 }
          for number in 0..<5 {
            let other = try await ben.createEvent("Other \(number)")["id"].string ?? ""
            try await ben.edit(other, #"{"title": "Another"}"#)
          }
          #expect(app.dependencies.eventQueue.waiting(at: event) == guests.count - 1)
          gate.continuation.finish()
          try await group.waitForAll()
        }
      }
      try await holding
      #expect(app.dependencies.eventQueue.isIdle)
      #expect(try await ana.get("events/\(id)")["counts"]["going"].int == guests.count)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }
}
