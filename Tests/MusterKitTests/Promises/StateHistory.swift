import Foundation
import MusterKit
import Postgres
import TestSupport

/// The values that the service has replaced, in the order of its transactions. Triggers write them into a table.
enum StateHistory {
  struct Entry: Codable, Sendable {
    let state: WriteLedger.State
    let old: String?
    let new: String?
  }

  /// Begins to keep the history of a database.
  static func keep(on server: MusterServer) async throws {
    try await ScriptConnection.run(server.databaseURL, timeout: .seconds(60)) { connection in
      try connection.script(
        """
        CREATE TABLE IF NOT EXISTS test_history (
          number bigint GENERATED ALWAYS AS IDENTITY, field text, object text, old text, new text
        );
        CREATE OR REPLACE FUNCTION keep_test_history() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        DECLARE field text; old_row jsonb := to_jsonb(OLD); new_row jsonb := to_jsonb(NEW);
        BEGIN
          FOREACH field IN ARRAY TG_ARGV LOOP
            IF old_row->>field IS DISTINCT FROM new_row->>field THEN
              INSERT INTO test_history (field, object, old, new) VALUES (
                field, coalesce(new_row->>'id', (new_row->>'event_id') || ' ' || (new_row->>'user_id')),
                old_row->>field, new_row->>field);
            END IF;
          END LOOP;
          RETURN NULL;
        END $$;
        CREATE OR REPLACE TRIGGER test_history AFTER UPDATE ON events
          FOR EACH ROW EXECUTE FUNCTION keep_test_history('title');
        CREATE OR REPLACE TRIGGER test_history AFTER UPDATE ON users
          FOR EACH ROW EXECUTE FUNCTION keep_test_history('display_name', 'bio');
        CREATE OR REPLACE TRIGGER test_history AFTER UPDATE ON invitations
          FOR EACH ROW EXECUTE FUNCTION keep_test_history('status', 'plus_ones');
        """)
    }
  }

  static func entries(of server: MusterServer) async throws -> [Entry] {
    let json: String = try await server.value(
      """
      SELECT coalesce(json_agg(
        json_build_object(
          'state', json_build_object('field', field, 'object', object), 'old', old, 'new', new)
        ORDER BY number), '[]')::text
      FROM test_history
      """)
    return try JSONDecoder().decode([Entry].self, from: Data(json.utf8))
  }
}

extension Write {
  /// The states that a write replaces, each with the value that a store shows before: those that only one write sets,
  /// and answers.
  @MainActor func replacements(in store: MusterStore) -> [WriteLedger.Replacement] {
    switch self {
    case .answer(let answer, let id, _):
      guard let me = store.profile.value?.id, let event = store.events.items.first(where: { $0.id == id }) else {
        return []
      }
      return [
        .init(state: .init(field: "status", object: "\(id) \(me)"), new: answer.rawValue, seen: event.myStatus.rawValue)
      ]
    case .setAnswer(let answer, let guest, let id):
      return guest.user.map { user in
        [
          .init(
            state: .init(field: "status", object: "\(id) \(user.id)"), new: answer.rawValue,
            seen: guest.status.rawValue)
        ]
      } ?? []
    case .editEvent(let id, let edit, let version):
      guard let title = edit.title, let event = store.events.items.first(where: { $0.id == id }) else { return [] }
      // A version is the app's own business.
      return [
        .init(
          state: .init(field: "title", object: "\(id)"), new: title, seen: event.title, isJudged: version == nil)
      ]
    case .editProfile(let edit):
      guard let user = store.profile.value else { return [] }
      if let name = edit.displayName {
        return [.init(state: .init(field: "display_name", object: "\(user.id)"), new: name, seen: user.displayName)]
      }
      guard case .set(let bio) = edit.bio else { return [] }
      return [.init(state: .init(field: "bio", object: "\(user.id)"), new: bio, seen: user.bio)]
    default: return []
    }
  }
}
