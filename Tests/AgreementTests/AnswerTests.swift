import Testing

@testable import App
@testable import MusterKit

/// Apps show what becomes of an answer before the service has responded.
@Suite struct AnswerTests {
  /// An event and one of its guests.
  private struct State {
    var service: App.AnswerRules
    var client: MusterKit.Places
    var old: App.Party
  }

  private enum Outcome: Hashable {
    case party(String, plusOnes: Int)
    case refused(String)
  }

  /// Events with up to 3 places, parties of up to 3 people, and all states of the guest and of the others.
  private static var states: [State] {
    var states: [State] = []
    for capacity in [nil, 1, 2, 3] as [Int?] {
      for maxPlusOnes in 0...2 {
        for going in 0...3 {
          for waiting in 0...3 {
            for (noneFits, isPast) in [(false, false), (false, true), (true, false), (true, true)] {
              for status in App.Invitation.Status.allCases {
                for plusOnes in 0...2 {
                  states.append(
                    State(
                      service: App.AnswerRules(
                        phase: App.Event.Phase(
                          isCancelled: false, isArchived: false, isOver: false, isPastAnswers: isPast),
                        places: App.Event.Places(
                          capacity: capacity, maxPlusOnes: maxPlusOnes, going: going, waiting: waiting,
                          noWaitingPartyFits: noneFits)),
                      client: MusterKit.Places(
                        capacity: capacity, maxPlusOnes: maxPlusOnes, going: going, waiting: waiting,
                        noWaitingPartyFits: noneFits, isPast: isPast),
                      old: App.Party(status: status, plusOnes: plusOnes)))
                }
              }
            }
          }
        }
      }
    }
    return states
  }

  private func service(
    _ state: State, _ answer: App.Invitation.Status, _ plusOnes: Int?, _ isSetByHost: Bool
  ) -> Outcome {
    do {
      let party = try state.service.party(
        after: answer, bringing: plusOnes, from: state.old, of: .invitee, isSetByHost: isSetByHost)
      return .party(party.status.rawValue, plusOnes: party.plusOnes)
    } catch let error as AppError {
      return .refused(error.fields.first.map { "\($0.field) \($0.code.rawValue)" } ?? error.slug)
    } catch {
      return .refused("\(error)")
    }
  }

  private func client(
    _ state: State, _ answer: App.Invitation.Status, _ plusOnes: Int?, _ isSetByHost: Bool
  ) -> Outcome {
    let old = MusterKit.Party(status: GuestStatus(rawValue: state.old.status.rawValue), plusOnes: state.old.plusOnes)
    guard let given = MusterKit.Answer(rawValue: answer.rawValue) else { return .refused("\(answer)") }
    do {
      let party = try state.client.party(
        after: given, bringing: plusOnes, from: old, isSetByHost: isSetByHost)
      return .party(party.status.rawValue, plusOnes: party.plusOnes)
    } catch {
      let problem = error.problem
      return .refused(problem.errors.first.map { "\($0.field) \($0.code)" } ?? problem.type.rawValue)
    }
  }

  @Test func `the client decides as the service does, for all small events`() {
    var outcomes: [Outcome: Int] = [:]
    var differences: [String] = []
    for state in Self.states {
      for answer in App.Invitation.Status.possibleAnswers {
        for plusOnes in [nil, 0, 1, 2, 3] as [Int?] {
          for isSetByHost in plusOnes == nil ? [false, true] : [false] {
            let expected = service(state, answer, plusOnes, isSetByHost)
            outcomes[expected, default: 0] += 1
            let found = client(state, answer, plusOnes, isSetByHost)
            if found != expected {
              differences.append("\(state) \(answer) \(plusOnes ?? -1): \(found), not \(expected)")
            }
          }
        }
      }
    }
    #expect(differences.isEmpty, "\(differences.count), such as \(differences.prefix(3))")
    // Each kind of outcome occurs, so that the comparison means something.
    let refusals = [
      "approval-pending", "answers-closed", "no-room", "plusOnes no-plus-ones", "plusOnes out-of-range",
    ]
    for reason in refusals { #expect(outcomes[.refused(reason)] ?? 0 > 100) }
    for status in ["going", "waitlisted", "maybe", "declined"] {
      #expect(outcomes[.party(status, plusOnes: 2)] ?? 0 > 100)
    }
  }
}
