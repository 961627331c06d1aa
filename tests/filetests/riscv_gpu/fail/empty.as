.blocks 4 # and nothing to do
