import Postgres
import Testing

@testable import App

/// Hosts are added, act and leave while others act on the same users and event.
@Suite struct HostRaceTests {
  private func run(_ body: @escaping @Sendable (TestApp, _ ana: Phone, _ ben: Phone) async throws -> Void) async throws
  {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await body(app, ana, ben)
      try await app.takeNotifications()
    }
  }

  @Test func `of two hosts who edit the same version at once, one gets 412`() async throws {
    try await run { app, ana, ben in
      let event = try await ana.createEvent()["id"].string ?? ""
      try await ana.addHost(ben, to: event)
      for version in 1...8 {
        let statuses = try await app.race(2) { index in
          try await [ana, ben][index].send(
            "PATCH", "events/\(event)", #"{"title": "Title \#(version) \#(index)"}"#,
            headers: [("If-Match", "\"\(version)\"")])
        }
        #expect(statuses == [200: 1, 412: 1])
      }
    }
  }

  @Test func `a host added against a block leaves no host across the block`() async throws {
    try await run { app, ana, ben in
      for round in 0..<8 {
        let event = try await ana.createEvent("Round \(round)")["id"].string ?? ""
        let offer = try await ana.offerHost(ben, to: event)
        let statuses = try await app.race(2) { index in
          index == 0
            ? try await ben.send("POST", "proposals/\(offer)/accept")
            : try await ana.send("PUT", "blocks/\(ben.id)")
        }
        #expect(statuses[204] == 1 && (statuses[200] ?? 0) + (statuses[404] ?? 0) == 1)
        #expect(try await app.value("SELECT count(*) FROM event_co_hosts") == 0)
        #expect(try await ben.send("GET", "events/\(event)").status == 404)
        try await ana.unblock(ben)
        try await app.befriend(ana, ben)
      }
    }
  }

  @Test func `a host added against the deletion of either account leaves an event with a host`() async throws {
    for deletesCreator in [true, false] {
      try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
        for round in 0..<6 {
          let (ana, ben) = try await app.friends("ana\(deletesCreator)\(round)", "ben\(deletesCreator)\(round)")
          let event = try await ana.createEvent("Round \(round)")["id"].string ?? ""
          let (gone, kept) = deletesCreator ? (ana, ben) : (ben, ana)
          let offer = try await ana.offerHost(ben, to: event)
          let statuses = try await app.race(2) { index in
            index == 0
              ? try await ben.send("POST", "proposals/\(offer)/accept")
              : try await gone.send("DELETE", "users/me", #"{"password": "\#(gone.password)"}"#)
          }
          #expect(statuses[204] == 1)
          let view = try await kept.send("GET", "events/\(event)")
          // If the deletion came first, ben was never a host, and no user is left who sees the event.
          let wasAdded = statuses[200] == 1
          #expect(view.status == (deletesCreator && !wasAdded ? 404 : 200))
          if view.status == 200 {
            #expect(view.json["creator"]["id"].string == kept.id && view.json["hosts"].array.count == 1)
          }
          #expect(try await app.value("SELECT count(*) FROM event_co_hosts") == 0)
        }
        try await app.takeNotifications()
      }
    }
  }

  @Test func `events that change while a host's events are being locked are locked all the same`() async throws {
    try await run { app, ana, ben in
      for number in 0..<6 {
        let creator = number < 3 ? ana : ben
        let event = try await creator.createEvent("Event \(number)")["id"].string ?? ""
        if number >= 3 { try await ben.addHost(ana, to: event) }
      }
      try await app.createWaiting()
      let locked = try await app.interrupting {
        try await app.database.transaction { transaction in
          // The plan of large tables.
          for plan in ["seqscan", "hashjoin", "mergejoin", "bitmapscan"] {
            try await transaction.rows("SELECT set_config(\("enable_" + plan), 'off', true)")
          }
          return try await transaction.rows(Event.locking(Event.hosted(by: ana.userID), where: "waited()")).count
        }
      } with: {
        try await app.database.execute("UPDATE events SET updated_at = now()")
      }
      #expect(locked == 6)
    }
  }

  @Test func `a block of two co-hosts against the deletion of the creator leaves no host across the block`()
    async throws
  {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      for round in 0..<8 {
        let (ana, ben) = try await app.friends("ana\(round)", "ben\(round)")
        let cleo = try await app.signUp("cleo\(round)")
        try await app.befriend(ana, cleo)
        let event = try await ana.createEvent("Round \(round)")["id"].string ?? ""
        for host in [ben, cleo] { try await ana.addHost(host, to: event) }
        let statuses = try await app.race(2) { index in
          index == 0
            ? try await cleo.send("PUT", "blocks/\(ben.id)")
            : try await ana.send("DELETE", "users/me", #"{"password": "\#(ana.password)"}"#)
        }
        #expect(statuses == [204: 2])
        // Ben has served longest.
        #expect(try await ben.get("events/\(event)")["creator"]["id"].string == ben.id)
        #expect(try await cleo.send("GET", "events/\(event)").status == 404)
        try await app.expectNothingCrossesABlock()
      }
      try await app.takeNotifications()
    }
  }

  @Test func `an invitation or a new host against a block leaves no guest across the block`() async throws {
    for invites in [true, false] {
      try await run { app, ana, ben in
        // Ana has the event, and ben is her co-host or becomes one. Cleo and he block each other.
        let cleo = try await app.signUp("cleo")
        try await app.befriend(ana, cleo)
        var orders = Set<Int>()
        for round in 0..<8 {
          let event = try await ana.createEvent("Round \(round)", inviting: invites ? [] : [cleo])["id"].string ?? ""
          if invites { try await ana.addHost(ben, to: event) }
          let offer = invites ? "" : try await ana.offerHost(ben, to: event)
          let statuses = try await app.race(2) { index in
            if index == 0 { return try await cleo.send("PUT", "blocks/\(ben.id)") }
            return invites
              ? try await ana.send("POST", "events/\(event)/invitations", #"{"userIds": ["\#(cleo.id)"]}"#)
              : try await ben.send("POST", "proposals/\(offer)/accept")
          }
          #expect(statuses[204] == 1)
          orders.formUnion(statuses.keys)
          #expect(try await cleo.send("GET", "events/\(event)").status == 404)
          try await app.expectNothingCrossesABlock()
          try await app.expectCounts()
          try await cleo.unblock(ben)
        }
        #expect(orders.isSubset(of: invites ? [204, 200, 422] : [204, 200]))
      }
    }
  }

  @Test func `an offer is accepted or taken back, never both`() async throws {
    try await run { app, ana, ben in
      for round in 0..<8 {
        let event = try await ana.createEvent("Round \(round)", inviting: [ben])["id"].string ?? ""
        let offer = try await ana.offerHost(ben, to: event)
        let statuses = try await app.race(3) { index in
          switch index {
          case 0: try await ben.send("POST", "proposals/\(offer)/accept")
          case 1: try await ben.send("POST", "proposals/\(offer)/decline")
          default: try await ana.send("DELETE", "events/\(event)/hosts/\(ben.id)")
          }
        }
        // The removal succeeds in any order, also if it removes the host.
        #expect(statuses[204, default: 0] >= 1 && statuses[200, default: 0] <= 1, "\(statuses)")
        #expect(try await app.value("SELECT count(*) FROM host_offers") == 0)
        let isHost: Bool? = try await app.value(
          "SELECT EXISTS (SELECT FROM event_co_hosts WHERE user_id = \(ben.userID) AND event_id = \(Event.ID(event)))")
        if statuses[200] == nil { #expect(isHost == false) }
        try await app.expectConsistency()
      }
    }
  }

  @Test func `a co-host removed against an unblock leaves no stale list of another co-host fresh`() async throws {
    for removesFirst in [true, false] {
      try await run { app, ana, ben in
        let cleo = try await app.signUp("cleo")
        try await app.befriend(ana, cleo)
        for round in 0..<4 {
          let event = try await ana.createEvent("Round \(round)")["id"].string ?? ""
          try await ana.addHost(ben, to: event)
          try await ana.addHost(cleo, to: event)
          // Cleo does not see the other co-host, until one of the changes is done.
          try await cleo.block(ben)
          let before = try await cleo.get("events")
          let pause = try await Pause(in: app)
          let acts: [@Sendable () async throws -> Int] = [
            { try await ana.send("DELETE", "events/\(event)/hosts/\(ben.id)").status },
            { try await cleo.send("DELETE", "blocks/\(ben.id)").status },
          ]
          let one = Task { try await acts[removesFirst ? 0 : 1]() }
          try await app.waitForLocks(1)
          let other = Task { try await acts[removesFirst ? 1 : 0]() }
          // The other change waits behind the first, or behind the pause.
          try await app.waitForLocks(2)
          let during = try await cleo.get("events")
          try await pause.end()
          let statuses = (try await one.value, try await other.value)
          #expect(statuses == (204, 204))
          let after = try await cleo.get("events")
          #expect(after["items"].array.allSatisfy { $0["hosts"].array.count == 2 })
          for copy in [before, during] where copy["timestamp"] == after["timestamp"] { #expect(copy == after) }
        }
      }
    }
  }
}
