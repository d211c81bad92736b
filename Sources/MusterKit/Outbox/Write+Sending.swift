import Foundation

extension Write {
  /// Sends this write.
  ///
  /// - Returns: the id of what it created, if it had a temporary one.
  /// - Throws: ``MusterError``
  func send(with client: MusterClient, key: IdempotencyKey) async throws -> UUID? {
    switch self {
    case .answer(let answer, let event, let plusOnes):
      try await client.events.answer(answer, to: event, plusOnes: plusOnes, key: key)
    case .acceptRequest(let id): try await client.friends.requests.accept(id, key: key)
    case .declineRequest(let id): try await client.friends.requests.decline(id, key: key)
    case .cancelRequest(let id): try await client.friends.requests.cancel(id, key: key)
    case .sendRequest(let person, _): return try await client.friends.requests.send(to: person.id, key: key).id.rawValue
    case .endFriendship(let user): try await client.friends.end(with: user, key: key)
    case .block(let person): try await client.blocks.block(person.id, key: key)
    case .unblock(let user): try await client.blocks.unblock(user, key: key)
    case .createEvent(let draft, _): return try await client.events.create(draft, key: key).id.rawValue
    case .editEvent(let id, let edit, let version):
      try await client.events.edit(id, applying: edit, ifVersion: version, key: key)
    case .cancelEvent(let id, let version): try await client.events.cancel(id, ifVersion: version, key: key)
    case .invite(let users, let event): try await client.events.invite(users, to: event, key: key)
    case .withdraw(let user, let event): try await client.events.withdraw(user, from: event, key: key)
    case .markRead(let ids): try await client.notifications.markRead(ids: ids, key: key)
    case .markAllRead(let stamp?, _): try await client.notifications.markRead(before: stamp, key: key)
    case .markAllRead(nil, _): try await client.notifications.markAllRead(key: key)
    case .editProfile(let edit): try await client.me.edit(edit, key: key)
    case .setPreferences(let preferences): try await client.notifications.setPreferences(preferences, key: key)
    }
    return nil
  }
}
