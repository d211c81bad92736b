import Foundation
import Postgres

/// Each row is made from its number alone.
extension LoadSeed {
  func userID(_ number: Int) -> User.ID {
    id("u", number, milliseconds: 1_600_000_000_000 + number)
  }

  func eventID(_ number: Int) -> Event.ID {
    id("e", number, milliseconds: 1_600_000_000_000 + number)
  }

  /// Rises with the number, so that rows are inserted in the order of their keys.
  private func id<Thing>(_ kind: String, _ number: Int, milliseconds: Int) -> Identifier<Thing> {
    var random = Random(seed, kind, number)
    let (high, low) = (random.next(), random.next())
    func byte(_ value: UInt64, _ place: Int) -> UInt8 { UInt8(truncatingIfNeeded: value >> (8 * UInt64(7 - place))) }
    let time = UInt64(milliseconds) << 16
    return Identifier(
      rawValue: UUID(
        uuid: (
          byte(time, 0), byte(time, 1), byte(time, 2), byte(time, 3), byte(time, 4), byte(time, 5),
          0x70 | byte(high, 6) & 0x0f, byte(high, 7), 0x80 | byte(low, 0) & 0x3f, byte(low, 1), byte(low, 2),
          byte(low, 3), byte(low, 4), byte(low, 5), byte(low, 6), byte(low, 7)
        )))
  }

  /// Most friends are in the same circle, some in neighboring circles, and a few are from anywhere. Offsets below half
  /// the number of users name each pair once.
  func friends(of number: Int) -> [Int] {
    var random = Random(seed, "friends", number)
    let furthest = max(1, (users - 1) / 2)
    var offsets: Set<Int> = []
    while offsets.count < min(Self.friendsForward, furthest) {
      let reach = offsets.count < 17 ? 40 : offsets.count < 22 ? 1000 : furthest
      offsets.insert(.random(in: 1...min(reach, furthest), using: &random))
    }
    return offsets.sorted().map { (number + $0) % users }.filter { $0 != number }
  }

  struct MadeEvent {
    let plan: Event.Plan
    let guests: [(user: Int, status: Invitation.Status)]
    let created: Timestamp
  }

  func event(_ number: Int) -> MadeEvent {
    var random = Random(seed, "event", number)
    let created = start.adding(seconds: -Int.random(in: 8 * 86_400..<30 * 86_400, using: &random))
    var plan = Event.Plan(
      title: Names.plans.randomElement(using: &random) ?? "", startTime: time(&random),
      timeZone: Names.zones.randomElement(using: &random) ?? "UTC")
    if Int.random(in: 0..<3, using: &random) > 0 { plan.note = Names.notes.randomElement(using: &random) }
    if Int.random(in: 0..<5, using: &random) > 0 {
      plan.endTime = plan.startTime.adding(seconds: 1800 * .random(in: 2...8, using: &random))
    }
    if Int.random(in: 0..<6, using: &random) > 0 {
      plan.location = Event.Location(
        name: Names.places.randomElement(using: &random) ?? "", latitude: .random(in: 36...60, using: &random),
        longitude: .random(in: -9...30, using: &random))
    }
    let candidates = friends(of: number / Self.eventsEach).shuffled(using: &random)
    let invited = candidates.prefix(.random(in: 4...16, using: &random))
    if Int.random(in: 0..<8, using: &random) == 0 { plan.capacity = .random(in: 2...6, using: &random) }
    var going = 0
    let guests = invited.map { user -> (user: Int, status: Invitation.Status) in
      switch Int.random(in: 0..<100, using: &random) {
      case ..<35: return (user, .invited)
      case ..<70:
        if let capacity = plan.capacity, going >= capacity { return (user, .waitlisted) }
        going += 1
        return (user, .going)
      case ..<83: return (user, .maybe)
      default: return (user, .declined)
      }
    }
    return MadeEvent(plan: plan, guests: guests, created: created)
  }

  /// From a week ago to two months ahead: evenings on weekdays, any time of the day on weekends.
  private func time(_ random: inout Random) -> Timestamp {
    let today = start.microseconds / 86_400_000_000
    let day = today + .random(in: -7...60, using: &random)
    // January 1, 1970 was a Thursday.
    let isWeekend = [2, 3].contains(day % 7)
    let hour = isWeekend ? Int64.random(in: 9...20, using: &random) : .random(in: 17...20, using: &random)
    let minute = [0, 0, 15, 30, 30, 45].randomElement(using: &random) ?? 0
    return Timestamp(microseconds: (day * 86_400 + hour * 3600 + Int64(minute) * 60) * 1_000_000)
  }
}
