import Postgres

/// One property that clients set, with the member of requests that has it, and its columns. A list of settings says
/// once what a POST and a PATCH read and what INSERT and UPDATE write. The name and the rule of a member come from the
/// document: see ``Body``.
struct Setting<Owner: Sendable>: Sendable {
  typealias Change = @Sendable (inout Owner) -> Void

  let name: String
  let columns: [Column<Owner>]
  /// The value on the wire.
  let value: @Sendable (Owner) -> any JSONWritable & Sendable
  let differs: @Sendable (Owner, Owner) -> Bool
  /// Nil if the request keeps the property.
  let read: @Sendable (inout Fields, Fields.Use) -> Change?

  /// - Parameters:
  ///   - columns: none for a property that other statements store.
  ///   - read: the new value from a request.
  init<Value: JSONWritable & Equatable & Sendable, Given>(
    _ member: Fields.Member<Given>, _ path: any WritableKeyPath<Owner, Value> & Sendable, in columns: [Column<Owner>],
    _ read: @escaping @Sendable (inout Fields, Fields.Member<Given>, Fields.Use) -> Edit<Value>
  ) {
    name = member.name
    self.columns = columns
    value = { $0[keyPath: path] }
    differs = { $0[keyPath: path] != $1[keyPath: path] }
    self.read = { fields, use in
      guard case .set(let new) = read(&fields, member, use) else { return nil }
      return { $0[keyPath: path] = new }
    }
  }

  /// A property that a POST must give.
  static func required<Value: JSONWritable & Equatable & SQLValue>(
    _ member: Fields.Member<Value>, _ column: String, _ path: any WritableKeyPath<Owner, Value> & Sendable
  ) -> Self {
    Self(member, path, in: [Column(column) { $0[keyPath: path] }]) { $0.edit($1, in: $2, isRequired: true) }
  }

  /// A property with a default that is not null.
  static func defaulted<Value: JSONWritable & Equatable & SQLValue>(
    _ member: Fields.Member<Value>, _ column: String, _ path: any WritableKeyPath<Owner, Value> & Sendable
  ) -> Self {
    Self(member, path, in: [Column(column) { $0[keyPath: path] }]) { $0.edit($1, in: $2) }
  }

  /// A property that may be null.
  static func optional<Value: JSONWritable & Equatable & SQLValue>(
    _ member: Fields.Member<Value>, _ column: String, _ path: any WritableKeyPath<Owner, Value?> & Sendable
  ) -> Self {
    Self(member, path, in: [Column(column) { $0[keyPath: path] }]) { $0.clearableEdit($1, in: $2) }
  }
}

/// The settings in a request.
struct Changes<Owner: Sendable>: Sendable {
  private let changes: [Setting<Owner>.Change]

  init(_ settings: [Setting<Owner>], from fields: inout Fields, in use: Fields.Use) {
    changes = settings.compactMap { $0.read(&fields, use) }
  }

  func applied(to old: Owner) -> Owner {
    var new = old
    for change in changes { change(&new) }
    return new
  }
}

extension Fields {
  /// The kind of request that a member is read from.
  enum Use {
    /// A POST: absent or null is the default.
    case post
    /// A PATCH: absent keeps the value.
    case patch
  }

  /// A member that always has a value.
  mutating func edit<Value>(_ member: Member<Value>, in use: Use, isRequired: Bool = false) -> Edit<Value> {
    switch use {
    case .patch: edit(member.name, member.rule())
    case .post where isRequired: .set(required(member))
    case .post: optional(member).map(Edit.set) ?? .keep
    }
  }

  /// A member that may be null.
  mutating func clearableEdit<Value>(_ member: Member<Value>, in use: Use) -> Edit<Value?> {
    switch use {
    case .patch: clearableEdit(member.name, member.rule())
    case .post: .set(optional(member))
    }
  }
}

/// The effect of a PATCH on a field.
enum Edit<Value: Sendable>: Sendable {
  case keep
  case set(Value)

  func applied(to old: Value) -> Value {
    switch self {
    case .keep: old
    case .set(let new): new
    }
  }
}
