import Foundation

extension Problem {
  /// A refusal by the rules that the client knows.
  static func refused(_ type: Slug, _ status: Int, _ detail: String, errors: [FieldProblem] = []) -> Problem {
    Problem(type: type, title: type.rawValue, status: status, detail: detail, requestId: "preview", errors: errors)
  }

  static func missing(_ type: Slug) -> Problem { refused(type, 404, "There is no such thing.") }

  static func invalid(_ errors: [FieldProblem]) -> Problem {
    refused(.invalidFields, 422, "Some fields are invalid.", errors: errors)
  }

  static func invalid(_ field: String, _ code: FieldProblem.Code, _ message: String) -> Problem {
    invalid([FieldProblem(field, code, message)])
  }

  static let lostUpdate = refused(
    .lostUpdate, 412, "The event has changed since you read it. Read it again, then retry.")
}

extension FieldProblem {
  init(_ field: String, _ code: Code, _ message: String) {
    self.init(field: field, code: code, message: message)
  }
}

extension Places.Refusal {
  var problem: Problem {
    switch self {
    case .approvalPending: .refused(.approvalPending, 409, "A host must approve the guest first.")
    case .answersClosed: .refused(.answersClosed, 409, "The deadline for answers has passed.")
    case .noRoom: .refused(.noRoom, 409, "The event has no room for that many more people.")
    case .noPlusOnes: .invalid("plusOnes", .noPlusOnes, "must be 0: this event does not allow plus-ones")
    case .tooManyPlusOnes(let maximum):
      .invalid("plusOnes", .outOfRange, "must be at most \(maximum): the event's maxPlusOnes")
    }
  }
}
