import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Users who stop their notifications in the middle of a storm. The other recipients must still get everything.
extension Storm {
  /// A user with one webhook.
  struct Leaver: Sendable {
    let phone: Phone
    let device: String
    let deviceID: Device.ID
    let parting: Parting
  }

  enum Parting: CaseIterable {
    case blocking, muting, removingDevice, deletingAccount
  }

  /// Seconds after a parting in which a send that began before it may still arrive: workers are stopped for up to 6.5.
  private static let grace = 12.0

  static func registerLeaver(_ number: Int, _ app: TestApp, _ sink: StormySink) async throws -> Leaver {
    let (phone, device) = (try await app.signUp("leaver\(number)"), "/leaver/\(number)")
    let response = try await phone.send(
      "PUT", "devices", #"{"platform": "webhook", "token": "\#(sink.url(of: device))"}"#)
    return Leaver(
      phone: phone, device: device, deviceID: try #require(Device.ID(response.json["id"].string ?? "")),
      parting: Parting.allCases[number % Parting.allCases.count])
  }

  static func stranger(in app: TestApp) async throws -> Person {
    let phone = try await app.signUp("stranger")
    return Person(id: phone.userID, username: "stranger", displayName: "Stranger", pictureURL: nil)
  }

  /// Ends what each leaver gets, one after the other, while changes are made.
  func part(whileChanging total: Int) async throws {
    for (number, leaver) in leavers.enumerated() {
      try await eventually(within: .seconds(600)) { changes >= total * (number + 4) / (leavers.count + 8) }
      try await untilCommitted { change in
        let user = leaver.phone.userID
        switch leaver.parting {
        case .blocking: try await User.block(stranger.id, by: user, in: change)
        case .muting:
          let types: [Notice.Kind: Bool] = [.eventUpdated: false, .eventInvited: false, .waitlistPromoted: false]
          _ = try await NotificationPreferences.choose(types, by: user, in: change)
        case .removingDevice:
          // It may have been removed by a commit without a response.
          _ = try await change.rows(Device.forgetting(where: "id = \(leaver.deviceID)"))
        case .deletingAccount:
          do { try await User.erase(user, by: nil, in: change) } catch let error as AppError
            where error.slug == AppError.sessionEnded.slug
          {}
        }
      }
      note(leaver.device, hasPartedAt: Date())
    }
  }

  /// Expects that nothing arrives for users who no longer want it, and everything else.
  func expectPartings(in arrivals: [StormySink.Arrival]) async throws {
    var (before, kept) = (0, 0)
    for leaver in leavers {
      let end = try #require(partings[leaver.device])
      let here = arrivals.filter { $0.device == leaver.device }
      before += here.count { $0.date < end }
      let after = here.filter { $0.date > end.addingTimeInterval(Self.grace) }
      let unwanted =
        leaver.parting == .blocking
        ? after.filter { $0.json["data"]["userId"].string == stranger.id.description } : after
      #expect(unwanted.isEmpty, "seed \(seed): \(unwanted.count) arrive at \(leaver.device) after \(leaver.parting)")
      if leaver.parting == .blocking { kept += after.count }
    }
    // The leavers got notices before, and those who only block continue to get others'.
    #expect(before > 0 && kept > 0, "seed \(seed)")
    try await app.expectNothingCrossesABlock()
    let gone = leavers.filter { $0.parting == .deletingAccount }.map(\.phone.userID)
    let traces: Int? = try await app.value(
      """
      SELECT (SELECT count(*) FROM notifications WHERE recipient_id = ANY(\(gone)))
        + (SELECT count(*) FROM deliveries WHERE recipient_id = ANY(\(gone)))
        + (SELECT count(*) FROM notification_queue WHERE recipient_ids && \(gone))
      """)
    #expect(traces == 0)
  }
}
