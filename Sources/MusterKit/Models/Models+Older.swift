// What follows from other members if a service is too old to send a member: `x-absent: hand` in the document.

extension Event {
  static func absentHosts(in container: KeyedDecodingContainer<CodingKeys>) throws -> [Person] {
    try container.decodeIfPresent(Person.self, forKey: .creator).map { [$0] } ?? []
  }

  static func absentMyRole(in container: KeyedDecodingContainer<CodingKeys>) throws -> EventRole {
    try container.decode(GuestStatus.self, forKey: .myStatus) == "creator" ? .creator : .guest
  }
}

extension Guest {
  static func absentId(in container: KeyedDecodingContainer<CodingKeys>) throws -> ID {
    ID(try container.decode(Person.self, forKey: .user).id)
  }

  static func absentName(in container: KeyedDecodingContainer<CodingKeys>) throws -> String {
    try container.decodeIfPresent(Person.self, forKey: .user)?.displayName ?? ""
  }
}
