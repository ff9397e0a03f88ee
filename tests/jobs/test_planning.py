"""Planning faster is planning the same."""


def commands(workflow):
    lines = workflow.snakemake("-n", "-p", "quickstart").splitlines()
    return sorted(line.strip() for line in lines if "Shell command: " in line)


def test_the_planned_commands_are_the_same_word_by_word(whole):
    fast = commands(whole)
    whole.edit("Snakefile", "\nplan_faster(workflow)\n", "\n")
    assert len(fast) > 50
    assert fast == commands(whole)
