import MusterKit
import SwiftUI

/// Changes that did not happen, with what the user can do about each.
struct RefusalsSection: View {
  let refusals: Refusals

  var body: some View {
    if !refusals.all.isEmpty {
      Section("Please look at this") {
        ForEach(refusals.all) { refusal in row(of: refusal) }
      }
    }
  }

  private func row(of refusal: RefusedWrite) -> some View {
    VStack(alignment: .leading) {
      Text(refusals.title(of: refusal)).font(.headline)
      Text(refusal.sentence)
      HStack {
        if let again = refusals.againButton(refusal) { Button(again) { Task { await refusals.sendAgain(refusal) } } }
        Button(refusals.dismissButton(refusal)) { Task { await refusals.dismiss(refusal) } }
      }
      .buttonStyle(.borderless)
    }
  }
}
