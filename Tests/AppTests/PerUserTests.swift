import Testing

@testable import App

@Suite struct PerUserTests {
  @Test func `a user gets no more places than one user may have, and all users no more than the total`() throws {
    let places = PerUser(limit: 2, total: 3)
    let (ana, ben) = (User.ID.new(), User.ID.new())
    let held = [try places.take(for: ana), try places.take(for: ana), try places.take(for: ben)]
    #expect(throws: PerUser.Refusal.limit) { try places.take(for: ana) }
    #expect(throws: PerUser.Refusal.total) { try places.take(for: ben) }
    held[0].end()
    #expect(throws: Never.self) { try places.take(for: ben).end() }
  }

  @Test func `a place is given back once, by its end or when nothing holds it any longer`() throws {
    let places = PerUser(limit: 1)
    let ana = User.ID.new()
    var place: PerUser.Place? = try places.take(for: ana)
    place?.end()
    let next = try places.take(for: ana)
    // The end of the first place again: it must not free the second one's.
    place?.end()
    place = nil
    #expect(throws: PerUser.Refusal.limit) { try places.take(for: ana) }
    withExtendedLifetime(next) {}
    let ben = User.ID.new()
    func forget() throws { _ = try places.take(for: ben) }
    try forget()
    try forget()
  }
}
