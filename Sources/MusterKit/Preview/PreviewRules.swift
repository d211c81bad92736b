import Foundation

/// The rules of requests, as the export has them from the OpenAPI document: what the service answers with 422, whatever
/// it holds.
struct PreviewRules: Decodable, Sendable {
  /// Schemas by route, such as `POST /events/{id}/invitations`.
  private let bodies: [String: JSONValue]
  private let queries: [String: JSONValue]
  private let schemas: [String: JSONValue]

  /// The members of a body that prove who the user is, in logins and in changes of the own account. Previews accept all
  /// values of them.
  static func proofs(in route: Route) -> Set<String> {
    let proofs: Set = [
      "login", "password", "currentPassword", "code", "token", "refreshToken", "idToken", "nonce", "currentIdToken",
      "currentNonce", "authorizationCode",
    ]
    return switch route {
    // The address and a code stand for a token.
    case .confirmCode: proofs.union(["email"])
    case .changePassword, .confirmPasswordReset, .deleteMe, .editMe, .linkApple, .linkGoogle, .login, .refresh,
      .register, .signInWithApple, .signInWithGoogle, .undoEmailChange, .unlinkApple, .unlinkGoogle, .verifyEmail:
      proofs
    // The token of a device proves nothing.
    case .acceptFriendRequest, .acceptProposal, .addHost, .answerInvitation, .approveGuest, .block, .cancelEvent,
      .cancelFriendRequest, .createEvent, .createLink, .declineFriendRequest, .declineProposal, .duplicateEvent,
      .editEvent, .editLink, .endFriendship, .endSession, .exportMe, .getCalendarLink, .getEvent, .getEventCalendar,
      .getFriendRequest, .getLink, .getMe, .getNotificationPreferences, .getUser, .inviteToEvent, .joinByLink,
      .listBlocks, .listDevices, .listEvents, .listFriendRequests, .listFriends, .listGuests, .listHostOffers,
      .listInvitations, .listLinks, .listNotifications, .listProposals, .listRecommendedUsers, .listSessions,
      .logOut, .makeCalendarLink, .markNotificationsRead, .notifyOfAppleAccount, .putPicture, .registerDevice,
      .remindGuests, .removeDevice, .removeHost, .removePicture, .report, .requestCode, .requestPasswordReset,
      .revokeCalendarLink, .revokeLink, .searchUsers, .sendFriendRequest, .setAnswer, .setNotificationPreferences,
      .streamNotifications, .unblock, .validateCache, .withdrawInvitation:
      []
    }
  }

  /// - Throws: ``Problem`` `invalid-fields` or `malformed-body`
  func check(_ request: PreviewRequest, at route: Route) throws {
    var errors: [FieldProblem] = []
    // Without a body, a validation asks for all collections.
    let hasBody = if case .validateCache = route { !request.body.isEmpty } else { true }
    if let schema = queries[route.template] {
      errors = self.errors(in: .object(request.query.mapValues { .string($0) }), schema, isQuery: true)
    }
    if hasBody, let schema = bodies[route.template] {
      let body: JSONValue = try request.read()
      guard case .object = body else { throw Problem.refused(.malformedBody, 400, "The body must be a JSON object.") }
      errors += self.errors(in: body, schema)
      let proofs = Self.proofs(in: route)
      errors.removeAll { $0.code != FieldProblem.Code.required && proofs.contains($0.field) }
    }
    if !errors.isEmpty { throw Problem.invalid(errors) }
  }

  // MARK: Schemas

  /// A schema with its references followed, and whether null is also allowed.
  private func resolved(_ schema: JSONValue) -> (schema: JSONValue, allowsNull: Bool) {
    if let name = schema["$ref"]?.string?.split(separator: "/").last {
      return resolved(schemas[String(name)] ?? .object([:]))
    }
    if let choices = schema["anyOf"]?.elements {
      let others = choices.filter { $0["type"]?.string != "null" }
      if others.count == 1, let only = others.first { return (resolved(only).schema, others.count < choices.count) }
    }
    if let all = schema["allOf"]?.elements, schema["properties"] == nil {
      return (all.map { resolved($0).schema }.reduce(.object([:])) { merged($0, $1) }, false)
    }
    if let choices = (schema["oneOf"] ?? schema["anyOf"])?.elements?.map({ resolved($0).schema }),
      schema["properties"] == nil, choices.allSatisfy({ $0["properties"] != nil })
    {
      return (oneOf(choices, isExact: schema["oneOf"] != nil), false)
    }
    let types = schema["type"]?.elements?.compactMap(\.string) ?? []
    return (schema, types.contains("null") || schema["enum"]?.elements?.contains(.null) == true)
  }

  /// An object in one of several forms: the members of all, those that all require, and the forms.
  private func oneOf(_ choices: [JSONValue], isExact: Bool) -> JSONValue {
    let required = choices.map { Set($0["required"]?.strings ?? []) }
    let always = required.dropFirst().reduce(required.first ?? []) { $0.intersection($1) }
    guard case .object(var schema) = choices.reduce(.object([:]), { merged($0, $1) }) else { return .null }
    schema["required"] = .array(always.map { .string($0) })
    // Null is as good as absent for a member that only some forms have.
    let properties = (schema["properties"]?.members ?? [:]).map { name, rule in
      (name, always.contains(name) ? rule : .object(["anyOf": .array([rule, .object(["type": .string("null")])])]))
    }
    schema["properties"] = .object(Dictionary(uniqueKeysWithValues: properties))
    if isExact { schema["oneOf"] = .array(choices) }
    return .object(schema)
  }

  private func merged(_ one: JSONValue, _ other: JSONValue) -> JSONValue {
    let properties = (one["properties"]?.members ?? [:]).merging(other["properties"]?.members ?? [:]) { $1 }
    let required = (one["required"]?.elements ?? []) + (other["required"]?.elements ?? [])
    return .object(["type": .string("object"), "properties": .object(properties), "required": .array(required)])
  }

  /// The errors in the members of an object.
  private func errors(
    in value: JSONValue, _ schema: JSONValue, prefix: String = "", isQuery: Bool = false
  ) -> [FieldProblem] {
    let schema = resolved(schema).schema
    let members = value.members ?? [:]
    let known = schema["properties"]?.members ?? [:]
    let required = Set((schema["required"]?.elements ?? []).compactMap(\.string))
    var errors: [FieldProblem] = []
    for (name, rule) in known {
      let field = prefix + name
      switch members[name] {
      case nil:
        if required.contains(name) { errors.append(FieldProblem(field, .required, "is required")) }
      case .null? where required.contains(name): errors.append(FieldProblem(field, .required, "is required"))
      case let value? where isQuery:
        // A list in a query is one parameter.
        let wrong = self.errors(at: field, value.parsed(as: resolved(rule).schema), rule)
        errors += wrong.prefix(1).map { FieldProblem(field: field, code: $0.code, message: $0.message) }
      case let value?: errors += self.errors(at: field, value, rule)
      }
    }
    if isQuery || schema["additionalProperties"] == .bool(false) {
      errors += members.keys.filter { known[$0] == nil }.map { FieldProblem(prefix + $0, .unknown, "is unknown") }
    }
    errors += togetherness(of: members, schema, prefix: prefix)
    for condition in schema["allOf"]?.elements ?? [] {
      guard let test = condition["if"], let names = test["properties"]?.members?.keys else { continue }
      let isMet = self.errors(in: value, test).isEmpty && names.allSatisfy { members[$0] != nil }
      guard let rules = condition[isMet ? "then" : "else"] else { continue }
      for error in self.errors(in: value, rules, prefix: prefix)
      where !errors.contains(where: { $0.field == error.field }) {
        errors.append(error)
      }
    }
    return errors
  }

  /// The errors in groups of members: either exactly one of the group must be given, or both members of a pair.
  private func togetherness(of members: [String: JSONValue], _ schema: JSONValue, prefix: String) -> [FieldProblem] {
    func isGiven(_ name: String) -> Bool {
      switch members[name] {
      case nil, .null?, .bool(false)?: false
      // In the place of a flag, another value gives nothing.
      case .string?: schema["properties"]?[name].map { resolved($0).schema["const"] } != .bool(true)
      case .bool(true)?, .integer?, .double?, .array?, .object?: true
      }
    }
    if let pair = schema["if"]?["required"]?.strings, let rest = schema["then"]?["required"]?.strings {
      let names = pair + rest
      let missing = names.filter { !isGiven($0) }
      guard missing.count < names.count else { return [] }
      return missing.map { FieldProblem(prefix + $0, .required, "must also be given") }
    }
    guard let choices = schema["oneOf"]?.elements else { return [] }
    let always = schema["required"]?.strings ?? []
    let names = choices.flatMap { $0["required"]?.strings ?? [] }.filter { !always.contains($0) }
    let given = names.filter(isGiven)
    guard given.count != 1 else { return [] }
    // A flag is wrong next to others, even if it is not given.
    let hasFlag = choices.contains { $0["properties"]?.members?.values.contains { $0["const"] == .bool(true) } == true }
    let wrong = given.isEmpty || hasFlag ? names : given
    return wrong.map { FieldProblem(prefix + $0, given.isEmpty ? .required : .notAllowed, "exactly one must be given") }
  }

  /// The errors in a value.
  private func errors(at field: String, _ value: JSONValue, _ rule: JSONValue) -> [FieldProblem] {
    let (schema, allowsNull) = resolved(rule)
    if value == .null && (allowsNull || schema["type"]?.string == "null") { return [] }
    if let choices = schema["anyOf"]?.elements {
      let all = choices.map { errors(at: field, value, $0) }
      return all.contains(where: \.isEmpty) ? [] : all.first ?? []
    }
    func error(_ code: FieldProblem.Code) -> [FieldProblem] { [FieldProblem(field, code, "breaks a rule")] }
    if let words = schema["enum"]?.elements { return words.contains(value) ? [] : error(.notAllowed) }
    if schema["type"] == nil, let word = schema["const"] { return word == value ? [] : error(.notAllowed) }
    let types = schema["type"]?.elements?.compactMap(\.string) ?? [schema["type"]?.string ?? ""]
    switch types.first(where: { $0 != "null" }) {
    case nil: return error(.notAllowed)
    case "boolean"?: return if case .bool = value { [] } else { error(.wrongType) }
    case "integer"?, "number"?:
      guard let number = value.number else { return error(.wrongType) }
      let isWhole = types.contains("number") || number.rounded() == number
      // The event's own maximum of plus-ones is lower, and another error.
      let most = field == "plusOnes" ? nil : schema["maximum"]?.number
      let isInside = number >= schema["minimum"]?.number ?? -.infinity && number <= most ?? .infinity
      return isWhole && isInside ? [] : error(.outOfRange)
    case "array"?:
      guard let elements = value.elements else { return error(.wrongType) }
      if Double(elements.count) > schema["maxItems"]?.number ?? .infinity { return error(.outOfRange) }
      return elements.enumerated().flatMap { errors(at: "\(field)[\($0)]", $1, schema["items"] ?? .object([:])) }
    case "object"?:
      guard case .object = value else { return error(.wrongType) }
      return errors(in: value, schema, prefix: field + ".")
    case "string"?:
      let isID = schema["format"]?.string == "uuid"
      guard let text = value.string else { return error(isID ? .badFormat : .wrongType) }
      return (objection(to: text, schema, named: field)).map(error) ?? []
    default:
      // Without a type, as in a condition.
      guard let text = value.string else { return [] }
      return objection(to: text, schema, named: field).map(error) ?? []
    }
  }

  private func objection(to text: String, _ schema: JSONValue, named field: String) -> FieldProblem.Code? {
    let (format, pattern) = (schema["format"]?.string, schema["pattern"]?.string)
    // Passwords and the tokens of devices are taken as they are.
    let isOpaque = format == "password" || pattern == "^[!-~]+$"
    let shown =
      isOpaque ? text : text.trimmingCharacters(in: .whitespacesAndNewlines).precomposedStringWithCanonicalMapping
    let length = Double(format == "password" ? text.utf8.count : shown.unicodeScalars.count)
    if length < schema["minLength"]?.number ?? 0 { return .wrongLength }
    if format == "email" && !Self.isAddress(shown) { return .badFormat }
    if length > schema["maxLength"]?.number ?? .infinity { return .wrongLength }
    if let pattern, shown.range(of: pattern, options: .regularExpression) == nil { return .badFormat }
    if format == "uuid" && UUID(uuidString: text) == nil || format == "date-time" && !Self.isTime(text) {
      return .badFormat
    }
    // The document names the IANA database, whose names a schema cannot list.
    if field == "timeZone" && TimeZone(identifier: text) == nil { return .badFormat }
    // A line of text.
    if pattern == #"\S"#, shown.unicodeScalars.contains(where: { CharacterSet.controlCharacters.contains($0) }) {
      return .badFormat
    }
    return nil
  }

  private static func isAddress(_ text: String) -> Bool {
    let parts = text.split(separator: "@", omittingEmptySubsequences: false)
    return parts.count == 2 && parts.allSatisfy { !$0.isEmpty } && !text.contains(" ")
  }

  /// A day that its month does not have is no time.
  private static func isTime(_ text: String) -> Bool {
    let day = text.prefix(10)
    guard let time = WireTime.date(text), let midnight = WireTime.date("\(day)T00:00:00Z") else { return false }
    return time.timeIntervalSince1970 >= 0 && WireTime.text(midnight).hasPrefix(day)
  }
}

extension JSONValue {
  fileprivate var members: [String: JSONValue]? {
    guard case .object(let members) = self else { return nil }
    return members
  }

  fileprivate var elements: [JSONValue]? {
    guard case .array(let elements) = self else { return nil }
    return elements
  }

  fileprivate var strings: [String] { (elements ?? []).compactMap(\.string) }

  fileprivate var number: Double? {
    switch self {
    case .integer(let number): Double(number)
    case .double(let number): number
    case .null, .bool, .string, .array, .object: nil
    }
  }

  /// A query's text as the type that its schema wants.
  fileprivate func parsed(as schema: JSONValue) -> JSONValue {
    guard let text = string else { return self }
    switch schema["type"]?.string {
    case "integer": return .integer(Int(text) ?? .min)
    case "array":
      return .array(text.split(separator: ",", omittingEmptySubsequences: false).map { .string(String($0)) })
    default: return self
    }
  }
}
