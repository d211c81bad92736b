/// The number of places in each state of invitations: one for each guest, and one for each person they bring along.
public struct Counts: Codable, Sendable, Hashable {
  public var invited: Int
  public var going: Int
  public var maybe: Int
  public var declined: Int
  public var waitlisted: Int
  public var pending: Int

  public init(
    invited: Int = 0, going: Int = 0, maybe: Int = 0, declined: Int = 0, waitlisted: Int = 0, pending: Int = 0
  ) {
    self.invited = invited
    self.going = going
    self.maybe = maybe
    self.declined = declined
    self.waitlisted = waitlisted
    self.pending = pending
  }
}

extension Counts {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    invited = try container.decodeIfPresent(Int.self, forKey: .invited) ?? 0
    going = try container.decodeIfPresent(Int.self, forKey: .going) ?? 0
    maybe = try container.decodeIfPresent(Int.self, forKey: .maybe) ?? 0
    declined = try container.decodeIfPresent(Int.self, forKey: .declined) ?? 0
    waitlisted = try container.decodeIfPresent(Int.self, forKey: .waitlisted) ?? 0
    pending = try container.decodeIfPresent(Int.self, forKey: .pending) ?? 0
  }
}
