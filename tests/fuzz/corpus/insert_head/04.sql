/* c /* d */ */ INSERT INTO "t" # x
 (t.*) -- y
 FORMAT `TSV`	x