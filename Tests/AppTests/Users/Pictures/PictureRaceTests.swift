import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Concurrent changes of one picture. Each process admits one upload per user at a time, but there may be many
/// processes.
@Suite struct PictureRaceTests {
  @Test func `of many concurrent pictures one stays, and only its URL works`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for round in 0..<5 {
        // No picture is the same as the one of the round before.
        let pictures = try await app.pictures(round % 2 * 12..<(round % 2 + 1) * 12)
        let urls = try await withThrowingTaskGroup(of: String.self) { group in
          for picture in pictures {
            group.addTask { try await ana.putPastTheQueue(picture) }
          }
          return try await group.reduce(into: [String]()) { $0.append($1) }
        }
        let url = try #require(try await ana.get("users/me")["pictureUrl"].string)
        var alive: Set<String> = []
        for candidate in Set(urls) {
          let response = try await app.fetch(candidate)
          if response.status == 200 { alive.insert(candidate) }
        }
        #expect(alive == [url])
      }
    }
  }

  @Test func `the same picture sent many times at once has one URL`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let picture = try await app.picture(Sample.png(7))
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<12 {
          group.addTask { _ = try await ana.putPastTheQueue(picture) }
        }
        try await group.waitForAll()
      }
      let url = try #require(try await ana.get("users/me")["pictureUrl"].string)
      let again = try await ana.show(Sample.png(7))
      #expect(again == url)
    }
  }

  @Test func `profile and picture agree, whether it was put or removed last`() async throws {
    try await TestApp.run { app in
      let (first, second) = (try await app.picture(Sample.png()), try await app.picture(Sample.jpeg()))
      try await withThrowingTaskGroup(of: Void.self) { group in
        for round in 0..<20 {
          group.addTask {
            let (ana, ben) = (try await app.signUp("ana\(round)"), try await app.signUp("ben\(round)"))
            let request = try await ana.sendFriendRequest(to: ben)
            try await ben.accept(request)
            try await ben.expectNoStaleCopyCalledFresh(of: "friends") {
              async let put: String = ana.putPastTheQueue(first)
              async let other: String = ana.putPastTheQueue(second)
              try await ana.removePicture()
              _ = try await (put, other)
            }
            let url = try await ana.get("users/me")["pictureUrl"].string
            let seen = try await ben.get("friends")["items"][0]["user"]["pictureUrl"].string
            #expect(seen == url)
            let stored: Int? = try await app.value("SELECT count(*) FROM pictures WHERE user_id = \(ana.userID)")
            #expect(stored == (url == nil ? 0 : 1))
            if let url {
              let response = try await app.fetch(url)
              #expect(response.status == 200)
            }
          }
        }
        try await group.waitForAll()
      }
      try await app.takeNotifications()
    }
  }

  @Test func `an account that is deleted during an upload leaves no picture behind`() async throws {
    try await TestApp.run { app in
      let picture = try await app.picture(Sample.png())
      try await withThrowingTaskGroup(of: Void.self) { group in
        for round in 0..<16 {
          group.addTask {
            let ana = try await app.signUp("ana\(round)")
            async let deleted: APIResponse = ana.deleteAccount()
            do {
              _ = try await ana.putPastTheQueue(picture)
            } catch let error as AppError {
              #expect(error == .sessionEnded)
            }
            _ = try await deleted
          }
        }
        try await group.waitForAll()
      }
      let left: Int? = try await app.value("SELECT count(*) FROM pictures")
      #expect(left == 0)
    }
  }
}

extension TestApp {
  fileprivate func pictures(_ numbers: Range<Int>) async throws -> [Picture] {
    var pictures: [Picture] = []
    for number in numbers { pictures.append(try await picture(Sample.png(number))) }
    return pictures
  }
}

extension Phone {
  /// Sets a picture as another process would.
  ///
  /// - Returns: its URL.
  fileprivate func putPastTheQueue(_ picture: Picture) async throws -> String {
    let user = userID
    let path: String? = try await app.service.change { change in
      try await picture.put(of: user, in: change)
      return try await change.value("SELECT picture_url FROM users WHERE id = \(user)")
    }
    return app.url + (try #require(path))
  }
}
